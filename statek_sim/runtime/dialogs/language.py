"""In which language a job is to answer: what STATEK adds to its prompt and to its user's messages (1.2.5 to 1.4.2).

The texts are STATEK's own, see NOTICE: a request with a locale is as long here as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

RULES: Final[Mapping[str, str]] = {
    "EN": (
        "CRITICAL LANGUAGE RULE: 1. Respond to the user exclusively in English. 2. Translate example "
        "text, tool names, parameter names, and tool output into English before displaying them to the "
        "user. 3. Do not let examples or tool output written in another language change the language of "
        "your user-facing response."
    ),
    "PL": (
        "KRYTYCZNA ZASADA JĘZYKOWA: 1. Nigdy nie używaj angielskich nazw narzędzi ani parametrów w "
        "rozmowie z użytkownikiem (np. nie pisz 'status to success', tylko 'operacja zakończona "
        "sukcesem'). 2. Nawet jeśli dane z narzędzia są po angielsku, przetłumacz je przed "
        "wyświetleniem. 3. Jesteś polskim asystentem i udajesz, że nie znasz angielskiego."
    ),
    "DE": (
        "KRITISCHE SPRACHREGEL: 1. Verwende niemals englische Werkzeug- oder Parameternamen im Gespräch "
        "mit dem Benutzer (z.B. schreibe nicht 'status is success', sondern 'Vorgang erfolgreich "
        "abgeschlossen'). 2. Selbst wenn Werkzeugdaten auf Englisch sind, übersetze sie vor der Anzeige."
        " 3. Du bist ein deutschsprachiger Assistent und tust so, als würdest du kein Englisch "
        "verstehen."
    ),
    "FR": (
        "RÈGLE LINGUISTIQUE CRITIQUE : 1. N'utilisez jamais de noms d'outils ou de paramètres en anglais"
        " dans la conversation avec l'utilisateur (par ex. n'écrivez pas 'status is success', mais "
        "'opération terminée avec succès'). 2. Même si les données d'un outil sont en anglais, "
        "traduisez-les avant de les afficher. 3. Vous êtes un assistant francophone et vous faites "
        "semblant de ne pas connaître l'anglais."
    ),
    "ES": (
        "REGLA LINGÜÍSTICA CRÍTICA: 1. Nunca uses nombres de herramientas o parámetros en inglés en la "
        "conversación con el usuario (por ejemplo, no escribas 'status is success', sino 'operación "
        "completada con éxito'). 2. Aunque los datos de una herramienta estén en inglés, tradúcelos "
        "antes de mostrarlos. 3. Eres un asistente en español y finges no conocer el inglés."
    ),
    "IT": (
        "REGOLA LINGUISTICA CRITICA: 1. Non usare mai nomi di strumenti o parametri in inglese nella "
        "conversazione con l'utente (ad es. non scrivere 'status is success', ma 'operazione completata "
        "con successo'). 2. Anche se i dati di uno strumento sono in inglese, traducili prima di "
        "visualizzarli. 3. Sei un assistente italiano e fingi di non conoscere l'inglese."
    ),
}
"""By language: what follows the system prompt."""

HINTS: Final[Mapping[str, str]] = {
    "EN": "REMEMBER: Respond exclusively in English",
    "PL": "PAMIĘTAJ: Odpowiedz wyłącznie po polsku",
    "DE": "ERINNERUNG: Antworte ausschließlich auf Deutsch",
    "FR": "RAPPEL : Réponds uniquement en français",
    "ES": "RECUERDA: Responde exclusivamente en español",
    "IT": "RICORDA: Rispondi esclusivamente in italiano",
}
"""By language: what follows a message of the user, in brackets."""


def with_rule(prompt: str, locale: Any, metadata: Mapping[str, str]) -> str:
    """Return the system prompt with the rule of the locale's language; AUTO_LANG_RULE=FALSE leaves it out.

    A locale that is no `StatekLocale` is an AttributeError, as in STATEK, and ends the job.
    """
    if locale is None or _is_off(metadata, "AUTO_LANG_RULE"):
        return prompt
    rule = RULES.get(str(locale.lang_code))
    return f"{prompt}\n\n{rule}" if rule else prompt


def with_hint(message: str, locale: Any, metadata: Mapping[str, str]) -> str:
    """Return a message of the user with the hint of the locale's language; AUTO_LANG_HINT=FALSE leaves it out."""
    if not message or locale is None or _is_off(metadata, "AUTO_LANG_HINT"):
        return message
    hint = HINTS.get(str(locale.lang_code))
    return f"{message} ({hint})" if hint else message


def _is_off(metadata: Mapping[str, str], key: str) -> bool:
    return str(metadata.get(key, "")).upper() == "FALSE"
