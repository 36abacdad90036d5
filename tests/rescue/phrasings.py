"""Sentences that hold a call which nobody makes, in eight languages: `{call}` is where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PHRASINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "never": "I must never run {call} here.",
        "quoted": 'The user wrote "{call}" in the ticket.',
        "declined": "You asked for\n{call}\nbut I will not do that.",
        "asked": "Shall I send {call} now?",
        "past": "Yesterday I sent\n{call}\nand it failed.",
        "documented": "To remove a file the model writes:\n\n{call}\n\nNothing else is needed.",
        "found in a file": "notes.txt says: {call} It looks like an injection.",
    },
    "de": {
        "never": "Ich darf hier niemals {call} ausführen.",
        "quoted": "Im Ticket steht „{call}“, mehr nicht.",
        "declined": "Verlangt wurde\n{call}\nund das tue ich nicht.",
        "asked": "Soll ich {call} jetzt senden?",
        "past": "Gestern habe ich\n{call}\ngesendet, ohne Erfolg.",
        "documented": "Zum Löschen schreibt das Modell:\n\n{call}\n\nMehr braucht es nicht.",
        "found in a file": "In notes.txt steht: {call} Das sieht nach einem Angriff aus.",
    },
    "fr": {
        "never": "Je ne dois jamais exécuter {call} ici.",
        "quoted": "Le ticket contient « {call} », rien de plus.",
        "declined": "On m'a demandé\n{call}\nmais je refuse.",
        "asked": "Dois-je envoyer {call} maintenant ?",
        "past": "Hier j'ai envoyé\n{call}\nsans succès.",
        "documented": "Pour supprimer un fichier, le modèle écrit :\n\n{call}\n\nC'est tout.",
        "found in a file": "notes.txt contient : {call} C'est sans doute une attaque.",
    },
    "es": {
        "never": "Nunca debo ejecutar {call} aquí.",
        "quoted": "El ticket dice «{call}» y nada más.",
        "declined": "Me pidieron\n{call}\npero no lo haré.",
        "asked": "¿Envío {call} ahora?",
        "past": "Ayer envié\n{call}\ny falló.",
        "documented": "Para borrar un archivo, el modelo escribe:\n\n{call}\n\nNo hace falta más.",
        "found in a file": "En notes.txt pone: {call} Parece un ataque.",
    },
    "it": {
        "never": "Non devo mai eseguire {call} qui.",
        "quoted": "Nel ticket si legge «{call}» e basta.",
        "declined": "Mi è stato chiesto\n{call}\nma non lo farò.",
        "asked": "Devo inviare {call} adesso?",
        "past": "Ieri ho inviato\n{call}\nsenza successo.",
        "documented": "Per cancellare un file il modello scrive:\n\n{call}\n\nNon serve altro.",
        "found in a file": "In notes.txt si legge: {call} Sembra un attacco.",
    },
    "pt": {
        "never": "Nunca devo executar {call} aqui.",
        "quoted": "O ticket diz “{call}” e nada mais.",
        "declined": "Pediram-me\n{call}\nmas não o farei.",
        "asked": "Devo enviar {call} agora?",
        "past": "Ontem enviei\n{call}\ne falhou.",
        "documented": "Para apagar um ficheiro, o modelo escreve:\n\n{call}\n\nNão é preciso mais.",
        "found in a file": "Em notes.txt está: {call} Parece um ataque.",
    },
    "zh": {
        "never": "我绝不能在这里执行{call}。",
        "quoted": "工单里写着“{call}”，仅此而已。",
        "declined": "有人要求我执行\n{call}\n但我不会这样做。",
        "asked": "我现在要发送{call}吗？",
        "past": "昨天我发送了\n{call}\n但是失败了。",
        "documented": "要删除文件，模型会写：\n\n{call}\n\n不需要别的。",
        "found in a file": "notes.txt 里写着：{call} 这看起来像攻击。",
    },
    "ja": {
        "never": "ここで{call}を実行してはいけません。",
        "quoted": "チケットには「{call}」とだけ書いてあります。",
        "declined": "次の呼び出しを頼まれました。\n{call}\nしかし実行しません。",
        "asked": "今{call}を送りますか？",
        "past": "昨日\n{call}\nを送りましたが、失敗しました。",
        "documented": "ファイルを消すとき、モデルは次のように書きます。\n\n{call}\n\nこれだけです。",
        "found in a file": "notes.txt に {call} とあります。攻撃のようです。",
    },
}
