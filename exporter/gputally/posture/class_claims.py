"""What PriorityClasses claim: by name and use, what they are for, and by their descriptions, whom they preempt.

Only plain English in the words that people use for it is understood; whatever else is written claims nothing.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from gputally.frameworks import kubeflow
from gputally.posture.classes import CatalogueClass
from gputally.posture.gpu_workloads import GpuWorkload

TYPE_LABEL: Final = "workload-type"
"""The label of pods that says what they do; it may have a prefix."""
_TRAINING_NAME: Final = re.compile(
    r"(.*[-_.])?(training|train|retrain|retraining|pretrain|pretraining|finetune|finetuning)([-_.].*)?"
)
"""Like the names of serving tiers: one of these words is a separate part of the name."""
_WORD: Final = r"(?:pre-?empt|evict|displac)"
_ACTIVE: Final = rf"{_WORD}(?:e?s|ing|ion|e)?\b"
_DENIED: Final = re.compile(
    r"\b(?:(?:does|must|should|may|can|will) not|(?:does|must|should|ca|wo)n't|never|cannot|without|non?)"
    rf"[ _-]?(?:ever )?{_ACTIVE}(?! (?:this|these|it|them)\b)|\b{_WORD}e?s? (?:nobody|no[ -]one|nothing|none|no \w+)\b",
    re.IGNORECASE,
)
"""Says that the class does not preempt: "must not preempt", "never preempts", "nonpreempting", "preempts nobody". Not
"must not be preempted", "never preempted" or "do not preempt", which are about victims."""
_KEPT: Final = re.compile(
    rf"(?:\b(?:not|cannot)|n't) (?:ever )?(?:be |get )(?:ever )?{_WORD}ed\b"
    rf"|\b(?:is|are) not {_WORD}ed\b|\bnever (?:be )?{_WORD}ed\b"
    rf"|\b(?:not |non[ _-]?|un)(?:pre-?empt[ai]ble|evictable)\b"
    r"|\b(?:protected|safe|exempt|immune) (?:from|against|to) (?:pre-?emption|eviction)\b"
    rf"|(?:^|[.:;!,(] *)(?:please )?(?:do not|don't|never) {_WORD}e?(?= (?:this|these|it|them)\b| *(?:$|[.:;,!)]))"
    rf"|\bdo[_-]not[_-]{_WORD}e?\b",
    re.IGNORECASE,
)
"""Says that the class is not to be preempted."""
_CLAIMED: Final = re.compile(rf"\b{_WORD}e?s?\b(?P<whom>[^.;:!?\n]*)", re.IGNORECASE)
_NO_NOUN: Final = r"(?:may|can|will|shall|should|must|could|do|does|is|are|be|always|also|still|only|often|never|not)\b"
_SUBJECT: Final = re.compile(
    rf"(?<![\w-])(?!{_NO_NOUN})(?P<who>[\w-]+(?:,? (?:and|or) [\w-]+|, (?!{_NO_NOUN})[\w-]+)*)"
    rf"(?: (?:pods?|jobs?|workloads?|work|class(?:es)?|tiers?))?(?: {_NO_NOUN})* *$",
    re.IGNORECASE,
)
"""Who does it, right before the verb: "inference" of "batch; inference jobs may also preempt training"."""
_SENTENCE: Final = re.compile(r"[^.;!?\n]+")
_CONDITION: Final = re.compile(r"\b(?:if|unless|until|when|while|as long as)\b", re.IGNORECASE)
_TURN: Final = re.compile(rf"\b(?:but|except|not|never|without|while|{_WORD}ed)\b", re.IGNORECASE)
"""What follows is said of something else, or denied."""
_LOWER: Final = frozenset({"lower", "below", "beneath", "under", "less", "least"})
_ALL: Final = frozenset({"all", "any", "anyone", "anything", "every", "everyone", "everything", "everybody"})
_GENERAL: Final = _LOWER | _ALL | {"other", "others", "such", "including", "example", "eg"}
"""A clause with one of these words means more than the classes that it names."""
_LEVELS: Final = frozenset({"high", "higher", "low", "medium", "normal", "standard", "default"})
_COMMON: Final = _LEVELS | {"gpu", "class", "priority", "tier", "ml", "ai"}
"""Parts of names that do not tell one class from another."""


class Purpose(StrEnum):
    """What GPU pods are for, as far as it decides who may preempt whom."""

    SERVING = "serving"
    TRAINING = "training"


_BY_LABEL: Final[Mapping[str, Purpose]] = {
    "inference": Purpose.SERVING,
    "serving": Purpose.SERVING,
    "training": Purpose.TRAINING,
    "train": Purpose.TRAINING,
}


def named_purpose(found: CatalogueClass) -> Purpose | None:
    """What the name and the tier of a class say that it is for; None for neither, and for both."""
    trains = any(_TRAINING_NAME.fullmatch(name) for name in (found.name, found.tier))
    if found.is_serving == trains:
        return None
    return Purpose.SERVING if found.is_serving else Purpose.TRAINING


def workload_purpose(found: GpuWorkload) -> Purpose | None:
    """What a workload is for: its label says so, or a PyTorchJob trains."""
    if found.kind == kubeflow.PYTORCH_JOB and not any(_is_type(*each) for each in found.labels.items()):
        return Purpose.TRAINING
    return labelled_purpose(found.labels)


def labelled_purpose(labels: Mapping[str, str]) -> Purpose | None:
    """What the label of a pod says that it is for; None if several labels contradict each other."""
    said = {_BY_LABEL[value] for key, value in labels.items() if _is_type(key, value)}
    return said.pop() if len(said) == 1 else None


def _is_type(key: str, value: str) -> bool:
    return key.rpartition("/")[2] == TYPE_LABEL and value in _BY_LABEL


def class_purpose(found: CatalogueClass, used_for: Collection[Purpose]) -> Purpose | None:
    """What a class is for: what its name says, else what the workloads that use it are for, if they agree."""
    return named_purpose(found) or (next(iter(used_for)) if len(used_for) == 1 else None)


_PURPOSE_WORDS: Final = {
    Purpose.SERVING: frozenset({"inference", "serving", "user", "online"}),
    Purpose.TRAINING: frozenset({"training", "train"}),
}


class Claim(NamedTuple):
    """What is written, where, and the classes it names; none of them if it means all."""

    quote: str
    where: str
    names: frozenset[str] = frozenset()


def denied_preemption(found: CatalogueClass, classes: Sequence[CatalogueClass]) -> Claim | None:
    """Says that the class does not preempt, at all or the named classes."""
    for where, text in _texts(found):
        if said := _own(_DENIED, text, found, classes, is_name=where == "name"):
            clause = _SENTENCE.match(text[said.end() :])
            return Claim(said[0], where, _named(_TURN.split(clause[0])[0], classes) if clause else frozenset())
    return None


def denied_victimhood(found: CatalogueClass, classes: Sequence[CatalogueClass]) -> Claim | None:
    """Says that the class is not to be preempted, at all or by the named classes."""
    for where, text in _texts(found):
        for sentence in _SENTENCE.findall(text):
            said = _own(_KEPT, sentence, found, classes, is_name=where == "name")
            if not said or _CONDITION.search(sentence):
                continue
            by = re.match(r"(?: \w+)? by\b(.*)", sentence[said.end() :], re.IGNORECASE)
            if by and _LOWER & set(_words(by[1])):
                continue
            return Claim(said[0].strip(" .:;!,("), where, _named(by[1], classes) if by else frozenset())
    return None


def claimed_victims(found: CatalogueClass, classes: Sequence[CatalogueClass]) -> Claim | None:
    """Says that the class preempts the named classes, and no others."""
    names, quotes = set[str](), []
    text = _DENIED.sub(lambda said: "not" + " " * (len(said[0]) - 3), found.description)
    for said in _CLAIMED.finditer(text):
        if not _is_own(found, text[: said.start()], classes):
            continue
        clause = _TURN.split(said["whom"])[0]
        if _GENERAL & set(_words(clause)):
            return None
        named = _named(clause, classes)
        quotes += [f"{said[0].removesuffix(said['whom'])}{clause}".strip(" ,")] if named else []
        names |= named
    return Claim(" ... ".join(quotes), "description", frozenset(names)) if names else None


def _own(
    pattern: re.Pattern[str], text: str, found: CatalogueClass, classes: Sequence[CatalogueClass], *, is_name: bool
) -> re.Match[str] | None:
    """The first match that is about the class itself, as all of its name is."""
    matches = pattern.finditer(text)
    return next((each for each in matches if is_name or _is_own(found, text[: each.start()], classes)), None)


def _is_own(found: CatalogueClass, before: str, classes: Sequence[CatalogueClass]) -> bool:
    """Whether a verb after `before` is about the class itself: its subject names no other classes instead."""
    subject = _SUBJECT.search(before)
    if not subject:
        return True
    names, own = _named(subject["who"], classes), named_purpose(found)
    others = (words for purpose, words in _PURPOSE_WORDS.items() if purpose is not own)
    is_other = bool(names) or any(words & set(_words(subject["who"])) for words in others)
    return found.name in names or not is_other


def _texts(found: CatalogueClass) -> Iterator[tuple[str, str]]:
    yield "name", found.name
    yield "description", found.description


def _named(clause: str, classes: Sequence[CatalogueClass]) -> frozenset[str]:
    """The classes that a clause names, by name, a part of it, or what they are for; none of them if it means all."""
    if _GENERAL & set(_words(clause)):
        return frozenset()
    found = set[str]()
    for each in sorted(classes, key=lambda each: -len(each.name)):
        clause, times = re.subn(rf"(?<![\w-]){re.escape(each.name)}s?(?![\w-])", " ", clause, flags=re.IGNORECASE)
        found |= {each.name} if times else set()
    words = set(_words(clause))
    shared = frozenset.intersection(*(_parts(each) for each in classes)) if len(classes) > 1 else frozenset()
    return frozenset(found) | {each.name for each in classes if words & (_meanings(each) - shared - _COMMON)}


def _words(text: str) -> list[str]:
    """The words in lower case, and in the singular."""
    return [word if word in _GENERAL else word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", text.lower())]


def _parts(found: CatalogueClass) -> frozenset[str]:
    return frozenset(_words(f"{found.name} {found.tier}"))


def _meanings(found: CatalogueClass) -> frozenset[str]:
    purpose = named_purpose(found)
    return _parts(found) | (_PURPOSE_WORDS[purpose] if purpose else frozenset())
