"""What credentials look like, whatever they are called and wherever they stand.

The shapes are those that their makers publish and that GitHub's secret scanning, gitleaks 8 and detect-secrets 1.5
look for; the model providers' are as of 2026. detect-secrets itself does not fit: it reads lines of source code,
knows neither Anthropic's, Google's nor Hugging Face's keys, and cannot see a key that a stream sends in pieces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from statek_sim.cassettes.names import looks_drawn
from statek_sim.needles import Needles


@dataclass(frozen=True, slots=True)
class Shape:
    """Credentials known by how they look. One of `hints` is in each of them, in lower case: a quick first look.

    `inner` is a second look: the pattern without what stands before it, whose first letters are found at once.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    inner: re.Pattern[str]
    needs_digit: bool = False


# Not in the middle of a word; an escape that ends there (`\n`, `\u0020`, `%20`) is no word.
_START: Final = r"(?:(?<![A-Za-z0-9])|(?=-----)|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"


def _shape(kind: str, hints: str, pattern: str, *, needs_digit: bool = False) -> Shape:
    whole = re.compile(_START + pattern, re.DOTALL)
    return Shape(kind, tuple(hints.split("|")), whole, re.compile(pattern, re.DOTALL), needs_digit)


# What is between the lines of a key: ends of lines however they are written, quotes, what a quotation begins with.
_BETWEEN_LINES: Final = r"(?:[^A-Za-z0-9+/=-]|[A-Za-z0-9+/=]{1,2}(?![A-Za-z0-9+/=])){0,60}"
_KEY_END: Final = r"-----END (?:(?!--)[A-Z0-9 _-]){0,40}PRIVATE KEY(?: BLOCK)?-----"
# Within one text of a document.
_TO_THE_END: Final = r"(?:(?!-----)[^\"'`{}]){0,20000}" + _KEY_END
# A text that only says how a key begins has none of these lines behind it: headers, and Base64 as it begins in keys or
# in a row. The last line may be short, and whatever is written behind a key that is cut off is none of it.
_END_OF_LINE: Final = rf"(?:\s|\\{{1,15}}[nr]){_BETWEEN_LINES}"
_KEY_LINES: Final = (
    rf"(?:{_BETWEEN_LINES}[A-Z][A-Za-z-]{{2,20}}: [^\n\\\"]{{1,200}}){{0,4}}"
    rf"(?:{_BETWEEN_LINES}[A-Za-z0-9+/=]{{16,}}|{_END_OF_LINE}(?:M[A-Z]|b3B)[A-Za-z0-9+/=]*)"
    rf"(?:{_BETWEEN_LINES}[A-Za-z0-9+/=]{{16,}}){{0,2000}}"
    rf"(?:{_END_OF_LINE}[A-Za-z0-9+/=]{{1,15}}(?=[\"'`\\\s<]|-----END|\Z))?"
    rf"(?:{_BETWEEN_LINES}(?=-----END))?"
)

# Each finds its places in time linear in the text: what is repeated without a bound ends the pattern, or cannot start
# it again.
SHAPES: Final = (
    # OpenAI, Anthropic, OpenRouter, DeepSeek, LiteLLM and others; with a digit, so that hyphenated words are none.
    _shape("an API key (sk-…)", "sk-", r"sk-[A-Za-z0-9_-]{20,}", needs_digit=True),
    _shape("a Google API key", "aiza", r"AIza[\w-]{35}"),
    _shape("a Google API key", "aq.ab", r"AQ\.Ab[\w-]{40,}"),
    _shape("a Google OAuth token", "ya29.", r"ya29\.[\w-]{20,}"),
    _shape("a Google OAuth secret", "gocspx-", r"GOCSPX-[\w-]{20,}"),
    _shape("a Groq API key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _shape("an xAI API key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _shape("a Perplexity API key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    _shape("a Hugging Face token", "hf_|api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _shape("a Replicate token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _shape("an NVIDIA API key", "nvapi-", r"nvapi-[\w-]{40,}"),
    _shape("a Cerebras API key", "csk-", r"csk-[A-Za-z0-9]{30,}"),
    _shape("a Fireworks API key", "fw_", r"fw_[A-Za-z0-9]{20,}", needs_digit=True),
    _shape("a Tavily API key", "tvly-", r"tvly-[\w-]{20,}"),
    _shape("a LangSmith key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-fA-F]{32}_[0-9a-fA-F]{10}"),
    _shape("a Databricks token", "dapi", r"dapi[0-9a-f]{32}"),
    _shape(
        "an AWS access key id",
        "akia|asia|abia|acca|a3t",
        r"(?:A3T[A-Z0-9]|A[KS]IA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _shape("an Amazon Bedrock key", "absk", r"ABSK[A-Za-z0-9+/]{80,}={0,2}"),
    _shape("an Alibaba access key id", "ltai", r"LTAI[A-Za-z0-9]{20}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a GitHub token", "ghp_|gho_|ghu_|ghs_|ghr_", r"gh[pousr]_[A-Za-z0-9]{36,}"),
    _shape("a GitHub token", "github_pat_", r"github_pat_\w{50,}"),
    _shape(
        "a GitLab token",
        "glpat-|gldt-|glrt-|glptt-|glsoat-|gloas-|glcbt-|glft-|glimt-|glagent-",
        r"gl(?:pat|dt|rt|ptt|soat|oas|cbt|ft|imt|agent)-[\w.-]{20,}",
    ),
    _shape("a GitLab runner token", "gr1348941", r"GR1348941[\w-]{20,}"),
    _shape("a Slack token", "xox|xapp-", r"(?:xox[abeoprs](?:\.xox[bp])?|xapp)-[A-Za-z0-9-]{10,}"),
    _shape(
        "a Slack webhook",
        "hooks.slack.com",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{40,}",
    ),
    _shape("a Stripe key", "k_live_|k_test_|k_prod_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    _shape("a webhook secret", "whsec_", r"whsec_[A-Za-z0-9+/]{24,}"),
    _shape("a SendGrid key", "sg.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _shape("an npm token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _shape("a PyPI token", "pypi-", r"pypi-AgE[\w-]{50,}"),
    _shape("a DigitalOcean token", "_v1_", r"do[opr]_v1_[0-9a-f]{64}"),
    _shape("a Shopify token", "shpat_|shpca_|shppa_|shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _shape("a Square token", "sq0", r"sq0[a-z]{3}-[\w-]{22,}"),
    _shape("a Square token", "eaaa", r"EAAA[\w-]{56,}", needs_digit=True),
    _shape("a Twilio key", "sk", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("a Mailchimp key", "-us", r"[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),
    _shape("a Mailgun key", "key-", r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("a Vault token", "hvs.|hvb.|hvr.", r"hv[sbr]\.[\w-]{24,}"),
    _shape("a Terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"),
    _shape(
        "a Doppler token",
        "dp.pt.|dp.st.|dp.ct.|dp.sa.|dp.scim.|dp.audit.",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,}",
    ),
    _shape("a Linear key", "lin_api_", r"lin_api_[A-Za-z0-9]{40,}"),
    _shape("a Docker token", "dckr_", r"dckr_[op]at_[\w-]{27,}"),
    _shape("a Figma token", "figd_|figu_|figo_", r"fig[duo]_[\w-]{36,}"),
    _shape("a Supabase key", "sbp_|sb_secret_", r"sbp_[0-9a-f]{40}|sb_secret_[\w-]{22,}"),
    _shape("a Resend key", "re_", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9])", needs_digit=True),
    _shape("an E2B key", "e2b_", r"e2b_[0-9a-f]{40}"),
    _shape("a Firecrawl key", "fc-", r"fc-[0-9a-f]{32}(?![A-Za-z0-9])"),
    _shape("a Together key", "tgp_v1_", r"tgp_v1_[\w-]{40,}"),
    _shape("a PostHog key", "phx_", r"phx_[A-Za-z0-9]{40,}"),
    _shape("a Jina key", "jina_", r"jina_[0-9a-f]{32}[\w-]{20,}"),
    _shape(
        "a HubSpot token", "pat-na|pat-eu", r"pat-(?:na|eu)\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    ),
    _shape("a Render key", "rnd_", r"rnd_[A-Za-z0-9]{28,}"),
    _shape("a Trello token", "atta", r"ATTA[0-9a-f]{72}"),
    _shape("a Notion token", "ntn_", r"ntn_\d{11}[A-Za-z0-9]{35}"),
    _shape("a Postman key", "pmak-", r"PMAK-[0-9a-fA-F]{24}-[0-9a-fA-F]{34}"),
    _shape("a Pulumi token", "pul-", r"pul-[0-9a-f]{40}"),
    _shape("a Grafana token", "glc_|glsa_", r"gl(?:c|sa)_[A-Za-z0-9+/=_-]{32,}"),
    _shape(
        "a New Relic key", "nrak-|nral-|nrii-|nrjs-", r"NRA[KL]-[A-Z0-9]{27}|NRII-[\w-]{32}|NRJS-[0-9a-f]{19}"
    ),
    _shape("a Dynatrace token", "dt0c01.", r"dt0c01\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    _shape("a Sentry token", "sntrys_|sntryu_", r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    _shape("an Atlassian token", "atatt3|atctt3", r"AT[AC]TT3[A-Za-z0-9_=-]{60,}"),
    _shape("an Airtable token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _shape("a PlanetScale key", "pscale_", r"pscale_(?:tkn|oauth|pw|id)_[\w.-]{20,}"),
    _shape(
        "a Telegram bot token",
        ":a",
        r"(?:bot)?\d{5,16}:A[A-Za-z0-9_-]{34}(?![A-Za-z0-9])",
    ),
    _shape(
        "a 1Password token",
        "ops_eyj|a3-",
        r"ops_eyJ[A-Za-z0-9+/]{200,}={0,3}|"
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    _shape(
        "an age secret key", "age-secret-key-1", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"
    ),
    _shape("a Prefect key", "pnu_", r"pnu_[A-Za-z0-9]{36}"),
    _shape("a Heroku key", "hrku-aa", r"HRKU-AA[\w-]{58}"),
    _shape("an Artifactory key", "akcp|cmvmdgtu", r"AKCp[A-Za-z0-9]{60,}|cmVmdGtu[A-Za-z0-9]{50,}"),
    _shape("an Azure secret", "q~", r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
    _shape("an Adobe secret", "p8e-", r"p8e-[A-Za-z0-9]{32}"),
    _shape("a Clojars token", "clojars_", r"(?i:clojars_)[A-Za-z0-9]{60}"),
    _shape("a ClickHouse key", "4b1d", r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"),
    _shape("a Cloudflare key", "v1.0-", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    _shape("a Duffel token", "duffel_", r"duffel_(?:test|live)_[\w=-]{43}"),
    _shape("an EasyPost token", "ezak|eztk", r"EZ[AT]K[A-Za-z0-9]{54}"),
    _shape("a Facebook token", "eaam|eaac", r"EAA[MC][A-Za-z0-9]{20,}"),
    _shape(
        "a Flutterwave key", "flw", r"FLW(?:PUB|SEC)K_TEST-[0-9A-Za-z]{32}-X|FLWSECK_TEST-[0-9A-Za-z]{12}"
    ),
    _shape(
        "a Fly.io token",
        "fo1_|fm1|fm2_",
        r"(?:fo1_[\w-]{43}|fm1[ar]_[A-Za-z0-9+/]{100,}|fm2_[A-Za-z0-9+/]{100,})",
    ),
    _shape("a Frame.io token", "fio-u-", r"fio-u-[\w=-]{64}"),
    _shape("a Harness key", "pat.|sat.", r"[ps]at\.[\w-]{22}\.[0-9A-Za-z]{24}\.[A-Za-z0-9]{20}"),
    _shape("an Infracost token", "ico-", r"ico-[A-Za-z0-9]{32}"),
    _shape("a 42 secret", "s-s4t2", r"s-s4t2(?:ud|af)-[A-Fa-f0-9]{64}"),
    _shape("a MaxMind key", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    _shape("an Octopus key", "api-", r"API-[A-Z0-9]{26}(?![A-Za-z0-9])", needs_digit=True),
    _shape("an OpenShift token", "sha256~", r"sha256~[\w-]{43}"),
    _shape("a Readme token", "rdme_", r"rdme_[A-Za-z0-9]{70}"),
    _shape("a RubyGems token", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _shape("a Scalingo token", "tk-us-", r"tk-us-[\w-]{48}"),
    _shape("a Sendinblue token", "xkeysib-", r"xkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    _shape("a SettleMint token", "sm_", r"sm_(?:aat|pat|sat)_[A-Za-z0-9]{16}"),
    _shape("a Shippo token", "shippo_", r"shippo_(?:live|test)_[A-Fa-f0-9]{40}"),
    _shape("a Sourcegraph token", "sgp_", r"sgp_(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{40}"),
    _shape("a Slack token", "xoxe-|xoxe.", r"xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{146,166}"),
    _shape("a GitLab token", "glffct-|_gitlab_session=", r"(?:glffct-|_gitlab_session=)[\w-]{20,}"),
    _shape("a Teams webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/[\w@/-]{60,}"),
    _shape("a Buildkite token", "bkua_", r"bkua_[0-9a-f]{40}"),
    _shape("a Contentful token", "cfpat-", r"CFPAT-[\w-]{43}"),
    _shape("a Typeform token", "tfp_", r"tfp_[\w.=-]{40,}"),
    _shape("a Tailscale key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}"),
    _shape("a Snyk token", "snyk_", r"snyk_[us]at\.[0-9a-f]{8}\.[\w.-]{40,}"),
    _shape("a Netlify token", "nfp_", r"nfp_[A-Za-z0-9]{36}"),
    _shape("a Pinecone key", "pcsk_", r"pcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}"),
    _shape("a Neon key", "napi_", r"napi_[a-z0-9]{40,}", needs_digit=True),
    _shape("a CircleCI token", "ccipat_|cciprj_", r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    _shape("a Linear token", "lin_oauth_", r"lin_oauth_[A-Za-z0-9]{40,}"),
    _shape("a Notion token", "secret_", r"secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a Dropbox token", "sl.", r"sl\.(?:u\.)?[\w-]{130,}", needs_digit=True),
    _shape("a Logfire token", "pylf_v", r"pylf_v\d_[a-z]{2}_[A-Za-z0-9]{40,}"),
    _shape("a Vercel token", "vcp_|vci_|vca_|vcr_|vck_", r"vc[piark]_[A-Za-z0-9]{24,}", needs_digit=True),
    _shape("a Bitbucket password", "atbb", r"ATBB[A-Za-z0-9]{32}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a MailerSend token", "mlsn.", r"mlsn\.[0-9a-f]{64}"),
    _shape("an Inngest key", "signkey-", r"signkey-[a-z]{2,10}-[0-9a-f]{32,}"),
    _shape("a Razorpay key", "rzp_", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    _shape(
        "a Plaid token",
        "access-",
        r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    ),
    _shape(
        "a Braintree token",
        "access_token$",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    _shape(
        "a LaunchDarkly key", "api-|sdk-|mob-", r"(?:api|sdk|mob)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    ),
    _shape("a Lob key", "live_|test_", r"(?:live|test)_[0-9a-f]{35}(?![A-Za-z0-9])"),
    _shape("a Mapbox token", "sk.eyj", r"sk\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    _shape("an Okta token", "ssws", r"SSWS[ =:]{1,3}[\w-]{40,}"),
    _shape(
        "a Yandex key",
        "aqvn|t1.|y0_",
        r"AQVN[\w-]{35,38}|t1\.[A-Z0-9a-z_-]{1,400}={0,2}\.[\w-]{86}={0,2}|y0_[\w-]{50,}",
        needs_digit=True,
    ),
    _shape("a Heroku key", "hrku-", r"HRKU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _shape("a Google refresh token", "1//0", r"1//0[\w-]{40,}"),
    _shape("a NuGet key", "oy2", r"oy2[a-z0-9]{43}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a Google Cloud HMAC id", "goog", r"GOOG1?[A-Z0-9]{20,60}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a Weights & Biases key", "wandb_v1_", r"wandb_v1_[\w-]{40,}"),
    _shape("a Discord webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/\d{15,21}/[\w-]{60,}"),
    _shape("a Zapier webhook", "hooks.zapier.com", r"hooks\.zapier\.com/hooks/catch/\d+/\w{5,}"),
    _shape("an ElevenLabs key", "sk_", r"sk_[0-9a-f]{48}(?![A-Za-z0-9])"),
    _shape("an Anyscale key", "esecret_", r"esecret_[A-Za-z0-9]{24,}", needs_digit=True),
    _shape("a Voyage key", "pa-", r"pa-[\w-]{40,}", needs_digit=True),
    _shape("an Adafruit key", "aio_", r"aio_[A-Za-z0-9]{28}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a LlamaCloud key", "llx-", r"llx-[A-Za-z0-9]{40,}"),
    _shape("a Mem0 key", "m0-", r"m0-[A-Za-z0-9]{40}(?![A-Za-z0-9])"),
    _shape("a Firebase key", ":apa91b", r"A{4}[\w-]{7}:APA91b[\w-]{100,}"),
    _shape("an Azure signature", "sig=", r"sig=[A-Za-z0-9%+/]{40,}(?:=|%3[dD])"),
    _shape("a Jina key", "jina_", r"jina_[a-f0-9]{32}[\w-]{20,}"),
    _shape("a crates.io token", "cio", r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", needs_digit=True),
    _shape("a Vercel token", "vercel_blob_rw_", r"vercel_blob_rw_\w{20,}"),
    _shape("a Browserbase key", "bb_live_|bb_test_", r"bb_(?:live|test)_[\w-]{20,}", needs_digit=True),
    _shape("an Azure OpenAI key", "jqqj99", r"[A-Za-z0-9]{40,54}JQQJ99[A-Za-z0-9]{20,30}"),
    _shape(
        "a private key",
        "private key|private-key",
        r"-----BEGIN (?:(?!--)[A-Z0-9 _-]){0,40}PRIVATE KEY(?: BLOCK)?-----"
        rf"(?:{_TO_THE_END}|{_KEY_LINES}(?:{_KEY_END})?)",
    ),
)

# Words and numbers with hyphens: the name of a package or a branch.
_WORDS: Final = re.compile(
    r"(?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15}|v?\d{1,8})(?:[-_](?:[A-Z]?[a-z]{1,15}|[A-Z]{1,15}|v?\d{1,8}))*"
)
# A JSON Web Token's middle, which starts at a full stop; its first part is before it.
_TOKEN_REST: Final = re.compile(r"\.eyJ[\w-]{10,}")
_TOKEN_END: Final = re.compile(r"\.?[\w-]{0,4000}")
_TOKEN_START: Final = re.compile(r"eyJ[\w-]{10,}\Z")
_LONGEST_START: Final = 2000
# A Discord token's two last parts; the first is before them.
BOT_TOKEN: Final = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}")
_BOT_START: Final = re.compile(r"[MNO][A-Za-z\d_-]{23,25}\Z")


def shaped(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a text holds what looks like a credential: start, end, and what it is."""
    hinted = _HINTS.within(lowered)
    for shape in SHAPES:
        if not hinted.isdisjoint(shape.hints):
            if shape.inner.search(text) is None:
                continue
            done = 0
            for match in shape.pattern.finditer(text):
                if match.end() > done and (not shape.needs_digit or _is_drawn(match[0])):
                    done = _end_of_row(shape, text, match.end())
                    yield match.start(), done, shape.kind
    if "eyj" in lowered:
        yield from _web_tokens(text)
    if BOT_TOKEN.search(text):
        yield from _bot_tokens(text)


def _is_drawn(key: str) -> bool:
    """Whether what is behind the beginning of a key is no word."""
    _, _, behind = key.rpartition("_")
    return (any(map(str.isdigit, key)) and not _WORDS.fullmatch(key)) or looks_drawn(behind)


def _end_of_row(shape: Shape, text: str, end: int) -> int:
    """Return where the last key ends of those that stand in a row: one may have taken the first letters of the next."""
    longest = max(map(len, shape.hints))
    at = end - longest
    while at <= end:
        more = shape.inner.match(text, at)
        if more is not None and more.end() > end:
            end = more.end()
            at = end - longest
        else:
            at += 1
    return end


_HINTS: Final = Needles(hint for shape in SHAPES for hint in shape.hints)


def hints() -> tuple[str, ...]:
    """Return what is in every text that holds a credential of a known shape, in lower case."""
    return tuple(dict.fromkeys(hint for shape in SHAPES for hint in shape.hints))


def _bot_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    for match in BOT_TOKEN.finditer(text):
        first = _BOT_START.search(text, max(0, match.start() - 26), match.start())
        if first is not None and any(map(str.isdigit, match[0])):
            yield first.start(), match.end(), "a Discord bot token"


def _web_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    done = 0
    for match in _TOKEN_REST.finditer(text):
        first = _TOKEN_START.search(text, max(done, match.start() - _LONGEST_START), match.start())
        if first is not None:
            end = _TOKEN_END.match(text, match.end())
            yield first.start(), end.end() if end else match.end(), "a JSON Web Token"
            done = match.end()
        else:
            # Behind any other full stop it is the first part of a token itself.
            done = match.start() + 1
