"""How much context fits into memory: the formula, GGUF files, and cards."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from gguf import GGUFWriter
from typer.testing import CliRunner

from statek_sim.agent.context.vram.budget import fitting
from statek_sim.agent.context.vram.cards import MIB, Card, cards
from statek_sim.agent.context.vram.gguf import KEPT, read_metadata
from statek_sim.agent.context.vram.models import known_models, model_called
from statek_sim.agent.context.vram.shape import shape_of_config, shape_of_gguf
from statek_sim.cli.app import app
from statek_sim.errors import BadInput
from statek_sim.reporting.context_tables import in_markdown, model_rows
from statek_sim.values import JSON
from tests.docs.page import DOCS

LLAMA: dict[str, JSON] = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
}


def test_llama_3_8b_takes_128_kib_for_a_token() -> None:
    shape = shape_of_config(LLAMA, "config.json")
    assert shape.bytes_per_token() == 2 * 32 * 8 * 128 * 2 == 131_072
    rates = {kv: round(float(shape.bytes_per_token(kv)) * 1000 / MIB) for kv in ("f16", "q8_0", "q4_0")}
    assert rates == {"f16": 125, "q8_0": 66, "q4_0": 35}


def test_a_gibibyte_holds_5734_tokens() -> None:
    fit = fitting(shape_of_config(LLAMA, "x"), [1024 * MIB])
    assert (fit.tokens, fit.bound) == (5734, "memory")


def test_all_cards_count_less_what_is_used_and_the_weights() -> None:
    shape = shape_of_config(LLAMA, "x")
    one = fitting(shape, [512 * MIB], share=1.0).tokens
    both = fitting(shape, [512 * MIB, 256 * MIB], weights=256 * MIB, share=1.0).tokens
    assert one == both == 4096
    assert fitting(shape, [512 * MIB], weights=10**12).tokens == 0


def test_the_models_longest_context_bounds_what_fits() -> None:
    fit = fitting(shape_of_config(LLAMA, "x"), [80 * 1024 * MIB])
    assert (fit.tokens, fit.bound) == (8192, "the model's longest context")


def test_a_layer_with_a_window_takes_no_more_than_its_window() -> None:
    half = shape_of_config({**LLAMA, "sliding_window": 1000, "model_type": "gemma2"}, "x")
    assert [layer.window for layer in half.layers[:2]] == [1000, None]
    whole = shape_of_config(LLAMA, "x")
    assert half.bytes_for(1000) == whole.bytes_for(1000)
    assert half.bytes_for(3000) == whole.bytes_for(2000)
    assert half.bytes_for(3000, windows=False) == whole.bytes_for(3000)
    free = int(whole.bytes_for(2000))
    assert (half.tokens_in(free), half.tokens_in(free - 1)) == (3000, 2999)


def test_a_model_of_windows_only_has_room_for_any_number_of_tokens() -> None:
    shape = shape_of_config({**LLAMA, "sliding_window": 100, "max_position_embeddings": None}, "x")
    fit = fitting(shape, [1024 * MIB])
    assert fit.tokens is None
    assert fitting(shape, [1], share=1.0).tokens == 0


def test_a_window_that_is_not_used_is_none() -> None:
    shape = shape_of_config({**LLAMA, "sliding_window": 100, "use_sliding_window": False}, "x")
    assert {layer.window for layer in shape.layers} == {None}


def test_layer_types_say_which_layers_have_a_window() -> None:
    kinds: list[JSON] = ["sliding_attention", "full_attention"] * 16
    shape = shape_of_config({**LLAMA, "sliding_window": 128, "layer_types": kinds}, "x")
    assert [layer.window for layer in shape.layers[:3]] == [128, None, 128]


def test_deepseek_keeps_one_compressed_vector_for_a_token() -> None:
    shape = known_models()["DeepSeek-V2-Lite"].shape
    assert shape.bytes_per_token() == 27 * (512 + 64) * 2


def test_a_configuration_without_a_number_is_told_by_its_name() -> None:
    with pytest.raises(
        BadInput, match=r"^c.json: num_hidden_layers or n_layer is missing, expected a whole number"
    ):
        shape_of_config({}, "c.json")
    with pytest.raises(BadInput, match=r"^c.json: num_hidden_layers is 'x', expected a whole number$"):
        shape_of_config({"num_hidden_layers": "x"}, "c.json")


def test_an_unknown_type_of_cache_is_refused() -> None:
    with pytest.raises(
        BadInput, match=r"^no type of cache is called 'q8', expected f32, .*Did you mean 'q8_0'"
    ):
        shape_of_config(LLAMA, "x").bytes_per_token("q8")


# -- GGUF --------------------------------------------------------------------------------------------------------


def written(path: Path, arch: str = "llama", **more: object) -> Path:
    """Write a GGUF file with llama.cpp's own writer."""
    writer = GGUFWriter(str(path), arch)
    writer.add_block_count(4)
    writer.add_context_length(8192)
    writer.add_embedding_length(4096)
    writer.add_head_count(32)
    writer.add_rope_freq_base(500000.0)
    writer.add_token_list([f"token{at}" for at in range(KEPT + 50)])
    writer.add_token_scores([float(at) for at in range(KEPT + 50)])
    for key, value in more.items():
        name = f"{arch}.attention.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        else:
            assert isinstance(value, int)
            writer.add_uint32(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_a_file_of_llama_cpps_own_writer_is_read(tmp_path: Path) -> None:
    told = read_metadata(written(tmp_path / "a.gguf", head_count_kv=8))
    assert told["general.architecture"] == "llama"
    assert (told["llama.block_count"], told["llama.rope.freq_base"]) == (4, 500000.0)
    assert told["tokenizer.ggml.tokens"] == told["tokenizer.ggml.scores"] == KEPT + 50
    model = model_called(str(tmp_path / "a.gguf"))
    assert model.shape.bytes_per_token() == 4 * 2 * 8 * 128 * 2
    assert model.weights == (tmp_path / "a.gguf").stat().st_size


def test_layers_may_differ_in_heads_and_windows(tmp_path: Path) -> None:
    told = read_metadata(
        written(
            tmp_path / "a.gguf",
            "gemma4",
            head_count_kv=[8, 0, 2, 2],
            key_length=512,
            value_length=512,
            key_length_swa=256,
            value_length_swa=256,
            sliding_window=1024,
            sliding_window_pattern=[True, True, False, False],
            shared_kv_layers=1,
        )
    )
    shape = shape_of_gguf(told, "a.gguf")
    assert [layer.numbers for layer in shape.layers] == [8 * 512, 0, 2 * 1024, 0]
    assert [layer.window for layer in shape.layers][:3] == [1024, 1024, None]


@pytest.mark.parametrize("length", [0, 3, 4, 8, 24, 60, 200])
def test_a_file_that_is_cut_off_is_told_with_the_byte(length: int, tmp_path: Path) -> None:
    whole = written(tmp_path / "a.gguf").read_bytes()
    (tmp_path / "b.gguf").write_bytes(whole[:length])
    with pytest.raises(BadInput, match=r"b.gguf: no GGUF file that can be read: .* \(byte \d+\)$"):
        read_metadata(tmp_path / "b.gguf")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"GGML" + bytes(40), "it does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "it is of version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "it is of version 50331648, expected 2 or 3, little-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), "it says that it has 1152921504606846976 keys"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**60), "a text has 1152921504606846976 bytes"),
        (b"GGUF" + struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"k", 77), "there is no type 77"),
        (
            b"GGUF" + struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"k", 9, 0, 2**50),
            "an array has 1125899906842624 elements",
        ),
        (b"GGUF" + struct.pack("<IQQQ1sIIQIQ", 3, 0, 1, 1, b"k", 9, 9, 1, 0, 0), "an array in an array"),
    ],
)
def test_a_file_that_lies_about_its_lengths_is_refused(body: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(body)
    with pytest.raises(BadInput, match=message):
        read_metadata(tmp_path / "a.gguf")


# -- cards -------------------------------------------------------------------------------------------------------

LISTING = "0, NVIDIA A100, 81920, 41920, 40000\n1, Foo, Bar, 24576, 0, 24576\n"


def test_all_cards_are_read_and_what_is_used_on_them() -> None:
    found = cards(lambda: LISTING)
    assert found[0] == Card(index=0, name="NVIDIA A100", total=81920, used=41920, free=40000)
    assert (found[1].name, found[1].free) == ("Foo, Bar", 24576)


def test_a_line_that_is_no_card_is_told() -> None:
    with pytest.raises(BadInput, match=r"^nvidia-smi: '0, GB10, \[N/A\], \[N/A\], \[N/A\]' is no card"):
        cards(lambda: "0, GB10, [N/A], [N/A], [N/A]\n")
    with pytest.raises(BadInput, match=r"^nvidia-smi lists no card; say the free memory with --free MIB$"):
        cards(lambda: "\n")


# -- the command -------------------------------------------------------------------------------------------------


def test_the_table_has_a_dozen_models() -> None:
    done = CliRunner().invoke(app, ["context", "vram"])
    lines = done.output.splitlines()
    assert len(known_models()) >= 12
    assert next(line for line in lines if line.startswith("Llama-3-8B")).split()[2:6] == [
        "125.0",
        "66.4",
        "35.2",
        "5,734",
    ]


def test_a_model_on_given_cards(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    asked = [
        "context",
        "vram",
        "Mistral-7B-v0.3",
        "--free",
        "1024",
        "--free",
        "1024",
        "--kv",
        "q8_0",
        "--json",
        str(out),
    ]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "21,588 tokens fit, bounded by memory" in done.output
    assert json.loads(out.read_text())["tokens"] == 21_588


def test_a_folder_with_a_configuration_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": LLAMA}))
    assert model_called(str(tmp_path)).shape.bytes_per_token() == 131_072


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Llama-3-8", "is no .gguf file, no config.json, .*Did you mean 'Llama-3-8B'"),
        ("nowhere.gguf", "nowhere.gguf: cannot be read: No such file"),
        ("nowhere.json", "nowhere.json: cannot be read: No such file"),
    ],
)
def test_a_model_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model_called(name)


def test_the_page_shows_the_table_of_models() -> None:
    table = "\n".join(in_markdown(model_rows(list(known_models().values()))))
    assert table in (DOCS / "context.md").read_text("utf-8")
