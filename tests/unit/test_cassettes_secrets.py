"""What is taken for a credential in a text, and what looks like one and is none."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from statek_sim.cassettes.names import is_placeholder, is_secret_header, is_secret_name
from statek_sim.cassettes.reading import read, replaced

H, A, U = "4f9b2c8d1e7a", "4f9Qm2Zr8TtYw1Lk7Xc3Vb6N", "4f9b2c8d-1e7a-4c3d-9b2f-0a1b2c3d4e5f"
KEYS = (
    f"bkua_{(H * 4)[:40]}", f"CFPAT-{(A * 2)[:43]}", f"tfp_{A * 2}", f"tskey-auth-{A[:12]}-{A}",
    f"snyk_uat.{H[:8]}.{A * 2}", f"nfp_{(A * 2)[:36]}", f"pcsk_{A[:5]}_{A * 2}", f"napi_{H * 4}",
    f"CCIPAT_{A}_{(H * 4)[:40]}", f"lin_oauth_{A * 2}", f"secret_{(A * 2)[:43]}", f"sl.{A * 6}",
    f"pylf_v1_eu_{A * 2}", f"vcp_{A}", f"ATBB{(A * 2)[:32]}", f"mlsn.{(H * 6)[:64]}", f"signkey-prod-{H * 3}",
    f"rzp_live_{A[:14]}", f"access-production-{U}", f"access_token$production${H}4f9b${(H * 3)[:32]}", f"sdk-{U}",
    f"live_{(H * 3)[:35]}", f"sk.eyJ{A}.{A}", f"SSWS {A * 2}", f"AQVN{(A * 2)[:36]}", f"y0_{A * 3}", f"HRKU-{U}",
    f"1//0{A * 2}", f"oy2{(H * 4)[:43]}", f"GOOG{A.upper()}", f"wandb_v1_{A * 2}", f"?sv=1&sig={A * 2}%3D",
    f"https://discord.com/api/webhooks/4308217969588323/{A * 3}", f"https://hooks.zapier.com/hooks/catch/230/{A[:9]}",
    f"sk_{H * 4}", f"esecret_{A * 2}", f"pa-{A * 2}", f"aio_{(A * 2)[:28]}", f"llx-{A * 2}", f"m0-{(A * 2)[:40]}",
    f"jina_{(H * 3)[:32]}{A}", f"cio{(A * 2)[:32]}", f"vercel_blob_rw_{A}_{A}", f"bb_live_{A}",
    f"{(A * 3)[:52]}JQQJ99BAAC{A[:20]}",
    f"AAAAPDqp7K_:APA91b{A * 6}", f"https://api.telegram.org/bot5808180667:A{(A * 2)[:34]}/getMe",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_key_of_a_known_shape_is_found_without_a_name(key: str) -> None:
    for text in (f"it is {key} here", json.dumps({"note": [f"({key})"]}), f"first\n{key}\n"):
        clean = replaced(text, read(text))
        assert key[-12:] not in clean


@pytest.mark.parametrize(
    "command",
    [
        "mysql -u root -phunter22x shop",
        "mysqldump --single-transaction -uroot -p'hunter22x' shop > a.sql",
        "curl -s -u me:hunter22x https://h.test",
        "curl --user me:hunter22x https://h.test",
        "sshpass -p hunter22x ssh me@h.test",
        "PGPASSWORD=hunter22x psql shop",
        "redis-cli -h h.test -a hunter22x ping",
        "docker login -u me -p hunter22x registry.test",
        "tool --password hunter22x",
        "tool --password=hunter22x",
        "tool --password 'hunter22x' --port 1",
        'tool --token "hunter22x"',
        'curl -H "Authorization: Bearer hunter22x" https://h.test',
        "curl -H 'X-Api-Key: hunter22x' https://h.test",
        "az login --service-principal -u me -p hunter22x --tenant t",
        "openssl enc -aes-256-cbc -k hunter22x -in a",
        "htpasswd -bB passwords me hunter22x",
        "rabbitmqctl -n node add_user me hunter22x",
        "ftp -u me:hunter22x h.test",
        "echo hunter22x | docker login -u me --password-stdin",
        "echo 'hunter22x' | podman login --password-stdin registry.test",
        "user admin pass hunter22x",
        "username: admin, pass: hunter22x",
        'ConvertTo-SecureString "hunter22x" -AsPlainText -Force',
        "ConvertTo-SecureString -String hunter22x -AsPlainText",
        "machine h.test login me password hunter22x",
        "machine h.test\n  login me\n  password hunter22x",
        "ENV DB_PASSWORD hunter22x",
        "CREATE USER me IDENTIFIED BY 'hunter22x';",
        "alter role me with login password 'hunter22x';",
        "setx OPENAI_API_KEY hunter22x",
        'user.setPassword("hunter22x")',
    ],
)
def test_a_password_in_a_command_is_found_in_a_text_and_in_the_arguments_of_a_tool(command: str) -> None:
    for secret in ("hunter22x", "correct4horse"):
        text = f"First\n{command.replace('hunter22x', secret)}\nand then"
        for written in (text, json.dumps({"arguments": json.dumps({"command": text})})):
            assert secret not in replaced(written, read(written))


@pytest.mark.parametrize(
    "command",
    [
        "mysql -u root -phunter22x shop",
        "curl -u me:hunter22x https://h.test",
        "curl --user=me:hunter22x https://h.test",
        "sshpass -p hunter22x ssh me@h.test",
        "redis-cli -a hunter22x ping",
        "docker login -u me -p hunter22x",
        "mongosh shop -u me -p hunter22x",
        "mongodump -p=hunter22x",
        "ldapsearch -x -D cn=me -w hunter22x -b dc=h",
        "smbclient //h/share -U me%hunter22x",
        "rpcclient -U me%hunter22x h.test",
        "sqlcmd -S h.test -U sa -P hunter22x",
        "plink -pw hunter22x h.test",
        "openssl rsa -passin pass:hunter22x -in key.pem",
        "lftp -u me,hunter22x h.test",
        "xfreerdp /u:me /p:hunter22x /v:h.test",
        "7z a -phunter22x a.7z",
        "unzip -P hunter22x a.zip",
        r"net use Z: \\h\share /user:me hunter22x",
        r"net use \\h\share hunter22x /user:me",
    ],
)
def test_a_password_in_a_command_is_found_where_its_words_are_a_list(command: str) -> None:
    words = command.split()
    for written in (
        command,
        json.dumps(words),
        json.dumps({"command": words}, indent=4),
        json.dumps(words, separators=(",", ":")),
        json.dumps({"arguments": json.dumps({"command": words})}),
        repr(words),
    ):
        clean = replaced(written, read(written))
        assert "hunter22x" not in clean
        assert words[0] in clean


@pytest.mark.parametrize("text", ["tool --password correcthorse", "tool --password correcthorse --port 1"])
def test_a_password_without_digits_behind_its_flag_is_found_where_the_command_ends(text: str) -> None:
    assert "correcthorse" not in replaced(text, read(text))


@pytest.mark.parametrize(
    "text",
    [
        "pip install sk-learn-contrib-2024-package",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA7x\n-----END PUBLIC KEY-----",
        "token = 5",
        "<Contents><Key>photos/2024/IMG_20240101_88.jpg</Key><Size>3</Size></Contents>",
        "the user must pass 2 arguments",
        "docker run mysql -p3306:3306",
        "mongosh --port 27017 --quiet",
        "ldapsearch -W asks for it",
        "we use net income and pass it on to /user: pages",
        "open smbclient and list what is there",
        "openssl x509 -in cert.pem -noout",
        'the list ["curl", "-o", "page.html"] has no login',
        "zip -r a.zip folder, then unzip a.zip",
        "give it with --password or leave it out",
        "curl -o page.html https://h.test",
        "see https://h.test and pass on what mysql says -- please",
        "A PEM file starts with -----BEGIN PRIVATE KEY----- as you know, and goes on for a while",
        '{"a": "starts with -----BEGIN PRIVATE KEY-----", "b": "ends with -----END PRIVATE KEY-----"}',
        "DB_PASSWORD=${DB_PASSWORD}",
        "run it with {token=${TOKEN}, port=1}",
        "export API_KEY=$(pass show api)",
        "curl -u https://h.test",
        '{"name": "max_tokens", "value": 500}',
        '{"name": "password", "value": {"type": "string"}}',
        "ConvertTo-SecureString $password -AsPlainText",
        "the login page password reset is broken on this machine",
        "ENV PYTHON_VERSION 3.12.1",
        "ALTER ROLE me PASSWORD NULL",
        'user.setPassword("<your password>")',
        '{"content": "Use <password> here", "b": "<x>"}',
        '<add key="colour" value="4f9Qm2"/>',
        "login(user=me, password=readFromFile)",
        '<div id="password"><p>How to choose one</p></div><label id="token">Yours</label><a name="token">Token</a>',
        '{"key": "getUserProfileSettings"}',
    ],
)
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    assert replaced(text, read(text)) == text


@pytest.mark.parametrize(
    "name", ["developer_token", "BACKEND_TOKEN", "frontendToken", "trend-token", "x-super-token"]
)
def test_a_name_is_public_by_its_words_and_not_by_its_last_letters(name: str) -> None:
    assert is_secret_name(name)
    assert is_secret_header(name)


@pytest.mark.parametrize(
    "name", ["next_page_token", "nextPageToken", "NextToken", "eos_token", "pertoken", "per_token"]
)
def test_where_a_list_goes_on_is_no_secret(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "value", ["your cat rex 1234", "your dog", "your-Xy7Qm2Zr8TtYw1Lk", "your mother was here in 1998"]
)
def test_a_password_that_begins_like_a_placeholder_is_none(value: str) -> None:
    assert not is_placeholder(value)


@pytest.mark.parametrize(
    "value", ["your-api-key", "YOUR_OPENAI_API_KEY", "your api key here", "your_apikey", "your-token"]
)
def test_what_asks_for_a_secret_is_a_placeholder(value: str) -> None:
    assert is_placeholder(value)


@pytest.mark.parametrize(
    "value", [["hunter22x"], {"a": "hunter22x"}, [{"text_of": ["hunter22x"]}], 7182818284, [7182818284]]
)
def test_a_value_of_any_kind_beside_a_telling_name_is_found(value: object) -> None:
    for pair in ({"name": "password", "value": value}, {"value": value, "key": "db_password"}):
        text = json.dumps({"fields": [{"name": "page", "value": 2}, pair]})
        clean = replaced(text, read(text))
        assert "hunter22x" not in clean
        assert "7182818284" not in clean
        assert json.loads(clean)["fields"][0] == {"name": "page", "value": 2}


@pytest.mark.parametrize(
    "key",
    [
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{H}\n\n{A}\n{A}\n4f9Qm2==\n",
        f"-----BEGIN PRIVATE KEY-----\n{A}\n{A}\n4f9Qm2==\n-----END PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----{A}4f9Qm2-----END PRIVATE KEY-----",
        f'"-----BEGIN PRIVATE KEY-----\\n" +\n  "{A}\\n" +\n  "4f9Qm2\\n" + "-----END PRIVATE KEY-----"',
        f"> -----BEGIN OPENSSH PRIVATE KEY-----\n> b3BlbnNzaC1rZXk\n> {A}\n> 4f9Qm2",
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE4f9Qm2",
    ],
)
def test_a_private_key_is_found_and_what_follows_it_stays(key: str) -> None:
    written = json.dumps({"one": f"it is {key}", "two": "it stays"})
    clean = json.loads(replaced(written, read(written)))
    assert "4f9Qm2" not in clean["one"]
    assert clean["two"] == "it stays"


@pytest.mark.parametrize(
    "text",
    [
        '{"db_password": {"sensitive": true, "type": "string", "value": "hunter22x"}}',
        '{"secret": {"a": {"type": "string", "b": "hunter22x"}}}',
        '["mysql", "--password", "hunter22x"]',
        "curl -u me:'hunter22x' https://h.test",
        "curl -u 'me':'hunter22x' https://h.test",
        "curl -sSLu me:hunter22x https://h.test",
        "curl -u 'me:ab&hunter22x' https://h.test",
        'htpasswd -b passwords me "a&hunter22x"',
        "htpasswd -b -c passwords me hunter22x",
        "htpasswd -nb me hunter22x",
        '["mysql","-u","root","-p","hunter22x"]',
        '{"cmd":"curl","args":["-u","me:hunter22x"]}',
        'spawn("docker", ["login", "-u", "me", "-p", "hunter22x"])',
        'SECRET_TOKEN = b"hunter22x"',
        'PASSWORD=$"hunter22x"',
        "PASSWORD=ab\\ hunter22x",
        "PASSWORD=ab\\Hunter22x-hunter22x",
        'DB_PASSWORD=ab"hunter22x',
        "DB_PASSWORD=ab>hunter22x",
        "<p>DB_PASSWORD=ab\\4hunter22x</p>",
        '{"log": "DB_PASSWORD=[hunter22x]"}',
        '{"log": "DB_PASSWORD=(hunter22x)"}',
        "https://hunter22xZ:@git.test/a",
        "https://9eb04ff0hunter22xdecd2f:x-oauth-basic@git.test/a",
        '<a><password kind="x">hunter22x</a>',
        "Incorrect API key provided: 9eb04ff0hunter22xdecd2f5653.",
        "user 'admin' pass 'hunter22x'",
        "password: |\n  hunter22x\nport: 1",
        "password: &one hunter22x",
        "password: !!str hunter22x",
        'password: ["hunter22x"]',
        "- name: DB_PASSWORD\n  value: hunter22x",
        'variable "db_password" {\n  type = string\n  default = "hunter22x"\n}',
        'password: str = "hunter22x"',
        'let api_key: &str = "hunter22x";',
        'password = """hunter22x"""',
        "define('DB_PASSWORD', 'hunter22x')",
        'os.environ.setdefault("DB_PASSWORD", "hunter22x")',
        'headers.set("Authorization", "Bearer hunter22x")',
        "PASSWORD ?= hunter22x",
        "<input name=password value=hunter22x>",
        '<meta name="csrf-token" content="hunter22x">',
        "<key>password</key><string>hunter22x</string>",
        "<member><name>password</name><value><string>hunter22x</string></value></member>",
        '<password value="hunter22x"/>',
        '{"Name": "DB_PASSWORD", "Value": "hunter22x"}',
        '{"id": "password", "value": "hunter22x"}',
        '{"API Key": "hunter22x"}',
        "<pre>user,password\nme,hunter22x</pre>",
        "DB_PASSWORD=p4ss,hunter22x",
        "REDIS_PASSWORD=hI3qM;|hunter22x\nX=1",
        "<pre>u=sa;password=7BIi#hunter22x;encrypt=true</pre>",
        "12:PASSWORD=ab(hunter22xACiz)cd",
        "+PASSWORD=ab(hunter22x#9m)cd",
        "<pre>PASSWORD=ab(hunter22x)cd\nX=1\n</pre>",
        "+ENV DB_PASSWORD hunter22x",
        'a.yaml:1: db_password: "hunter22x"',
        'user.withPassword("hunter22x")',
        'x.password !== "hunter22x"',
        "smbclient -U 'DOMAIN\\me%hunter22x' //h/share",
        "The API key for staging is 9eb04ff0hunter22xdecd2f5653 and it expires",
    ],
)
def test_a_value_is_found_however_it_is_written(text: str) -> None:
    """Each of these was found by somebody who had read the documentation only."""
    assert "hunter22x" not in replaced(text, read(text))
    for written in (json.dumps({"a": text}), json.dumps([json.dumps({"a": f"see:\n{text}\n"})])):
        clean = replaced(written, read(written))
        assert "hunter22x" not in clean
        assert "REDACTED" in clean
        json.loads(clean)


@pytest.mark.parametrize(
    "text",
    [
        "<password><![CDATA[hunter22x",
        '<r><![CDATA[DB_PASSWORD=a"bhunter22x]]></r>',
        b64encode(b"A=1\0DB_PASSWORD=hunter22x99\0HOME=/home/me\0").decode(),
        "?next=%2Fp%3Fq%3DDB_PASSWORD%253Dab%253Ehunter22xQQQz27%26z%3D1",
        "data: user,password\ndata: me,hunter22x\n\n",
        "?api-version-key=q%2FvDHRcktC%2Fhunter22xWI%2FIJ%2FZO&b=2",
        "data: key.pem\n\ndata: -----BEGIN PRIVATE KEY-----\n\ndata: Ax8nXx7hunter22xARs0vMawUB3DIN\n\n",
        b64encode(b"hello there ghp_0123456789hunter22xABCDEFGHIJ0123456").decode().rstrip("=") + "Done.",
        '0:"ghp_0123456789abcdefghij"\n0:"hunter22xABCDEFGHIJ01234"\n',
    ],
)
def test_a_value_is_found_in_a_body_of_its_kind(text: str) -> None:
    clean = replaced(text, read(text))
    assert "hunter22x" not in clean
    assert "REDACTED" in clean


@pytest.mark.parametrize(
    "command",
    ["mysql -u root -p", "docker login -p", "sshpass -p", "ldapsearch -w", "redis-cli -a", "htpasswd -b f me",
     "tool --password", "setPassword("],
)  # fmt: skip
def test_a_command_that_asks_for_its_password_takes_nothing_of_the_document_for_one(command: str) -> None:
    for value in (
        {"input": {"command": command}, "name": "bash"},
        {"command": command, "description": "it asks"},
        {"input": {"words": command.split()}, "args": ["one"]},
        {"messages": [{"content": command}, {"content": "more"}]},
    ):
        for written in (
            json.dumps(value),
            json.dumps(value, separators=(",", ":")),
            json.dumps([json.dumps(value)]),
        ):
            assert replaced(written, read(written)) == written


@pytest.mark.parametrize(
    "text",
    [
        '{"properties": {"password": {"type": "STRING", "description": "of the account"}}}',
        '{"password": {"type": ["string", "null"], "description": "of the account"}}',
        '{"password": {"description": "of the account"}}',
        '{"securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}}}',
        '{"imagePullSecrets": [{"name": "regcred"}]}',
        '{"properties": {"api_key": {"type": "string", "minLength": 8}}}',
        '{"password": {"',
        "export API_KEY=${API_KEY:?missing}",
        'assert token == "abc"',
        "SELECT a FROM b WHERE token = $1",
        "{secret:!1}",
        'read -s -p "Password: " PW',
        'word = getpass("Password: ")\nprint(1)',
        "arn:aws:secretsmanager:us-east-1:1234:secret:prod/db-334IJG",
        "cookie: 200 g flour",
        "login(token)\n\r\n------WebKitzYDmcaza7l97bNun--",
        "def f(token: int = 5, password: str | None = None): ...",
        'add_argument("--password", "-p", help="what you log in with")',
        'option("--token", "API token to use")',
        'request.Header.Set("Authorization", "Bearer "+token)',
        'cache.put("token", "token")',
        "let one = Token::Number2(1);",
        "cat secret | md5sum",
        '"command": "mysql -u root -p", "description": "it asks"',
    ],
)
def test_what_people_write_about_secrets_stays(text: str) -> None:
    for written in (text, json.dumps({"a": text}), json.dumps([json.dumps({"a": f"see:\n{text}\n"})])):
        assert replaced(written, read(written)) == written


@pytest.mark.parametrize("key", ["dapi" + (H * 3)[:32], f"xai-{A * 3}", f"gsk_{A * 2}", f"sk-proj-{A * 2}"])
@pytest.mark.parametrize("between", ["", ", ", "\\n"])
def test_keys_in_a_row_are_all_found(key: str, between: str) -> None:
    text = f"{key}{between}{key}{between}{key}."
    clean = replaced(text, read(text))
    assert not any(key[at : at + 12] in clean for at in range(len(key) - 11))
    assert clean.endswith(".")


@pytest.mark.parametrize(
    "table",
    [
        'id,name,password\n1,me,hunter22x\n2,you,"a,""hunter22x"\n',
        "id;db_password\r\n1;hunter22x\r\n",
        "id\ttoken\n1\thunter22x",
        "| user | api_key | n |\n|---|:--|---|\n| me | hunter22x | 5 |\n| you | `hunter22x` | 6 |\n",
        " id | password \n----+----------\n  1 | hunter22x\n(1 row)\n",
        "+----+-----------+\n| id | secret    |\n+----+-----------+\n|  1 | hunter22x |\n+----+-----------+",
        "| setting | value |\n|---|---|\n| host | h.test |\n| password | hunter22x |",
        "| setting | value |\n|---|---|\n| **API key** | hunter22x |",
        "| user | `db_password` |\n|---|---|\n| me | hunter22x |",
        "| User | API Token |\n|---|---|\n| a \\| b | hunter22x |",
        "| a \\| b | password |\n|---|---|\n| x | hunter22x |",
        "key,value\nhost,db1\npassword,hunter22x\nport,1\n",
        "│ id │ secret │\n├──┼──┤\n│ 1 │ hunter22x │",
        '"user","api_key","n"\n"anna","hunter22x","1"\n',
    ],
)
def test_what_stands_under_a_telling_name_of_a_table_is_found(table: str) -> None:
    for written in (
        table,
        f"See:\n{table}",
        json.dumps({"a": f"{table}", "b": [table]}),
        json.dumps([json.dumps({"a": table})]),
    ):
        clean = replaced(written, read(written))
        assert "hunter22x" not in clean
        assert clean.count("REDACTED") == written.count("hunter22x")
        assert written[:1] not in "[{" or json.loads(clean)


@pytest.mark.parametrize(
    "table",
    [
        "You need a user, a password, and a token\nsay1, say2, say3",
        "| Token | Meaning |\n|---|---|\n| and | both |\n| or | one |",
        "user, password\nonly one cell 4",
        "id,max_tokens,next_page_token\n1,500,abc123",
    ],
)
def test_a_list_of_words_is_no_table(table: str) -> None:
    assert replaced(table, read(table)) == table


@pytest.mark.parametrize("around", ["see %s-suffix", "金鑰%s是", "(%s)"])
def test_a_bot_token_ends_where_its_letters_do(around: str) -> None:
    token = f"ODU3NzcwMjM3ODU0MTA3NDQx.GJ1Iem.{(A * 2)[:38]}"
    text = around % token
    assert token[-38:] not in replaced(text, read(text))


@pytest.mark.parametrize(
    "text",
    [
        "fw_QjNUEaksJEwDleuQBzqlmzcF",
        '{"functionKey": "QjNUEaksJEwDleuQBzqlmzcFaC"}',
        "X-Api-Key: QjNUEaksJEwDleuQBzqlmzcF",
        "password: QjNUEaksJEwDleuQBzqlmzcF",
    ],
)
def test_a_value_without_digits_is_found_by_how_its_letters_change(text: str) -> None:
    assert "QjNUEaks" not in replaced(text, read(text))


@pytest.mark.parametrize("text", ['a,b\n"x","password=%s"\n', "password=%s[x](y)", "use Bearer %s9 there"])
def test_a_word_without_digits_is_found_where_nothing_else_can_be(text: str) -> None:
    text = text.replace("%s", "swordfish")
    assert "swordfish" not in replaced(text, read(text))


@pytest.mark.parametrize(
    "text",
    [
        "User{name=me, password=%s}",
        "User{password=%s, name=me}",
        "{db_password=%s}",
        "<p>secret=%s</p>",
        "<code>DB_PASSWORD=%s</code>",
    ],
)
def test_a_member_in_braces_or_a_tag_is_no_argument(text: str) -> None:
    assert "swordfish" not in replaced(text % "swordfish", read(text % "swordfish"))
