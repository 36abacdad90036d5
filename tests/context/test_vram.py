"""How much context fits into memory: the formula and cards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from statek_sim.agent.context.vram import MIB, Card, Model, cards, fitting, model_called, model_of_config
from statek_sim.errors import BadInput
from statek_sim.values import JSON
from tests.says import line_with

LLAMA: dict[str, JSON] = {
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
}


def llama() -> Model:
    return model_of_config(LLAMA, "llama", "x")


def test_llama_3_8b_takes_128_kib_for_a_token() -> None:
    shape = llama()
    assert shape.bytes_per_token() == 2 * 32 * 8 * 128 * 2 == 131_072
    rates = {kv: round(float(shape.bytes_per_token(kv)) * 1000 / MIB) for kv in ("f16", "q8_0", "q4_0")}
    assert rates == {"f16": 125, "q8_0": 66, "q4_0": 35}


def test_a_gibibyte_holds_5734_tokens() -> None:
    fit = fitting(llama(), [1024 * MIB])
    assert (fit.tokens, fit.bound) == (5734, "memory")


def test_all_cards_count_less_what_is_used_and_the_weights() -> None:
    one = fitting(llama(), [1024 * MIB]).tokens
    both = fitting(llama(), [1024 * MIB, 256 * MIB], weights=256 * MIB).tokens
    assert one == both == 5734
    assert fitting(llama(), [512 * MIB], weights=10**12).tokens == 0


def test_the_models_longest_context_bounds_what_fits() -> None:
    fit = fitting(llama(), [80 * 1024 * MIB])
    assert (fit.tokens, fit.bound) == (8192, "the model's longest context")


def test_a_model_that_compresses_its_cache_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^c: models with a compressed cache \(kv_lora_rank\) are not"):
        model_of_config({**LLAMA, "kv_lora_rank": 512}, "m", "c")


def test_a_configuration_without_a_number_is_told_by_its_name() -> None:
    for value in (None, "x", 0, True):
        with pytest.raises(
            BadInput, match=line_with("c.json: ", "num_hidden_layers", "positive integer", f"got {value!r}")
        ):
            model_of_config({**LLAMA, "num_hidden_layers": value}, "m", "c.json")


def test_an_unknown_type_of_cache_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^unknown cache type 'q8'; expected f32, .*Did you mean 'q8_0'"):
        llama().bytes_per_token("q8")


# -- cards -------------------------------------------------------------------------------------------------------

LISTING = "0, NVIDIA A100, 81920, 41920, 40000\n1, Foo, Bar, 24576, 0, 24576\n"


def test_all_cards_are_read_and_what_is_used_on_them() -> None:
    found = cards(lambda: LISTING)
    assert found[0] == Card(index=0, name="NVIDIA A100", total=81920, used=41920, free=40000)
    assert (found[1].name, found[1].free) == ("Foo, Bar", 24576)


def test_a_line_that_is_no_card_is_told() -> None:
    with pytest.raises(BadInput, match=r"^nvidia-smi: '0, GB10, \[N/A\], \[N/A\], \[N/A\]': expected index"):
        cards(lambda: "0, GB10, [N/A], [N/A], [N/A]\n")
    with pytest.raises(BadInput, match=line_with("nvidia-smi", "no cards", "--free")):
        cards(lambda: "\n")


# -- models ------------------------------------------------------------------------------------------------------


def test_a_folder_with_a_configuration_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"text_config": LLAMA}))
    assert model_called(str(tmp_path)).bytes_per_token() == 131_072


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Llama-3-8", ": expected a config.json, .*Did you mean 'Llama-3-8B'"),
        ("nowhere.json", "nowhere.json: no such file or folder"),
    ],
)
def test_a_model_that_is_not_there_is_told(name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        model_called(name)
