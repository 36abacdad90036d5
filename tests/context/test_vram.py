"""How much context fits into memory: the formula and cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statek_sim.agent.context.kv_cache import known_models, model_called, shape_of_config
from statek_sim.agent.context.vram import MIB, Card, cards, fitting
from statek_sim.errors import BadInput
from statek_sim.values import JSON

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


# -- models ------------------------------------------------------------------------------------------------------


def test_a_folder_with_a_configuration_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": LLAMA}))
    assert model_called(str(tmp_path)).shape.bytes_per_token() == 131_072


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Llama-3-8", "is no config.json, .*Did you mean 'Llama-3-8B'"),
        ("nowhere.json", "nowhere.json: cannot be read: No such file"),
    ],
)
def test_a_model_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model_called(name)
