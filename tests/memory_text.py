"""What a query matches: the meaning of the query language, word by word."""

import difflib
import re
import unicodedata
from functools import cache

from memsvc.core import words
from memsvc.core.filters import Filter, selects
from memsvc.core.naming.commits import is_hash, names_commit
from memsvc.core.naming.names import files_in, versions_in
from memsvc.core.query import Term
from memsvc.core.records import SHAPES, Observation, author_of, kind_of

ENDING = r"(?<=\w{3})(?:ing|ed|es|s|e)"


def folded(text):
    """A text without case and accents."""
    apart = unicodedata.normalize("NFD", text.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char))


def forms(word):
    """A pattern for a word with any ending: fail, fails, failing and failed are one."""
    return re.sub("(?<=..)[iy]$", "[iy]", re.sub(f"{ENDING}$", "", word)) + f"(?:{ENDING})?"


@cache
def columns(record):
    """The words of a record by field; `parts` has a line for each of its `pieces`."""
    shape = SHAPES[kind_of(record)]
    cells = {name: getattr(record, name) for name in shape.texts}
    cells["files"] = sorted({path for name in shape.files for path in getattr(record, name)})
    texts = {name: c if isinstance(c, str) else "\n".join(c) for name, c in cells.items()}
    lines = {name: [words.tokens(text)] for name, text in texts.items()}
    lines["parts"] = [*pieces("\n".join(texts.values())), words.tokens(author_of(record))]
    return {n: "\n".join(f" {folded(' '.join(each))} " for each in lines[n]) for n in lines}


def pieces(text):
    """The words inside identifiers, and what `tokens` leaves out."""
    for identifier in re.findall(r"[^\W_]+(?:[-_.][^\W_]+)*", text):
        tokens = words.tokens(identifier)
        cut = [piece for token in tokens for piece in words.split_token(token)]
        if len(cut) > len(tokens):
            yield cut
    yield from zip(words.joined_neighbours(text))
    yield from zip((*words.symbols(text), *"".join(words.cjk_runs(text))))


def readings(query):
    """The plain words of a query, whole and in pieces: any of them may match."""
    found = list(dict.fromkeys(each for term in query.words for each in of_word(term)))
    if query.is_about_names:
        found += [each for term in query.words for each in names_of(term) if each not in found]
    return [each for each in found if each.text not in words.STOP_WORDS] or found


def of_word(term):
    text = re.sub(r"(?i)(?<![^\W_])v(?=\d+\.\d)", "", term.text)  # v1.2.3 is 1.2.3
    tokens, symbols = words.tokens(text), words.symbols(text)
    yield from map(Term, symbols)
    if term.prefix and not words.has_cjk(text):
        yield Term(" ".join(tokens).lower(), prefix=True)
        return
    for token in (each for each in tokens if not (symbols and len(each) == 1)):
        for run in words.script_runs(token.lower()):
            yield from map(Term, words.bigrams(run) if words.has_cjk(run) else [run])
        if is_hash(token):
            yield Term(token.lower(), prefix=True)
            yield from (Term(token[:length].lower()) for length in range(7, min(13, len(token))))
        if not words.has_cjk(token) and len(words.split_token(token)) > 1:
            yield Term(" ".join(words.split_token(token)))
    yield from map(Term, words.joined_neighbours(text))


def names_of(term):
    text = re.sub(r"(?i)(?<![^\W_])v(?=\d+\.\d)", "", term.text)
    yield from (Term(" ".join(words.all_subwords(each))) for each in versions_in(text))
    yield from (Term(" ".join(words.tokens(each)).lower()) for each in files_in(text))


def as_written(terms):
    """What required or excluded terms must hold; characters of CJK have no title of their own."""
    terms = list(terms)
    yield from (term for term in terms if term.author)
    for term in (term for term in terms if not term.author):
        tokens = words.tokens(term.text)
        if plain := " ".join(token for token in tokens if not words.has_cjk(token)):
            yield Term(plain, term.prefix, title=term.title)
        cut = (" ".join(words.split_token(each)) for each in tokens if words.has_cjk(each))
        yield from map(Term, (*cut, *words.symbols(term.text)))


def places(record, term):
    """The fields of a record that hold these words in their order; a prefix begins the last."""
    if term.author:
        return ["author"] * is_by(record, term)
    *firsts, last = folded(term.text).split()
    wanted = " ".join([*map(forms, firsts), rf"{last}\S*" if term.prefix else forms(last)])
    held = [name for name, text in columns(record).items() if re.search(f" {wanted} ", text)]
    return [name for name in held if name == SHAPES[kind_of(record)].title or not term.title]


def is_by(record, term):
    """Whether an author's name has all of these words, or words that begin so."""
    name = [folded(word) for word in words.tokens(author_of(record))]
    wanted = [folded(word) for word in words.tokens(term.text)]
    same = str.startswith if term.prefix else str.__eq__
    return all(any(same(word, each) for word in name) for each in wanted)


def matches(record, query):
    """Any of the words, unless something is required; all of that; nothing that is excluded; or
    the same of another wording.
    """
    if query.also:
        return any(matches(record, each) for each in query.wordings)
    named = hashes_of(record, query)

    def held(terms):
        return all(places(record, each) for each in as_written(terms))

    unwanted = (selects(Filter((group,)), record) for group in query.excluded_filters)
    if any(held([term]) for term in query.excluded) or any(unwanted):
        return False
    if query.required:
        return held(term for term in query.required if term.commit not in named)
    return query.only_excludes or named or any(places(record, each) for each in readings(query))


def hashes_of(record, query):
    """The hashes of a query that name the commit of a record."""
    if not isinstance(record, Observation):
        return []
    return [each for each in query.commits if names_commit(each.hash, record.source_id)]


def asked(query):
    each = [[*readings(wording), *as_written(wording.required)] for wording in query.wordings]
    return list(dict.fromkeys(term for terms in each for term in terms))


def matched_terms(record, query):
    """The terms that a record holds, each with its fields."""
    found = {shown(term): places(record, term) for term in asked(query)}
    for commit in hashes_of(record, query):
        found[commit.hash] = [*found.get(commit.hash, []), "source_id"]
    return {text: fields for text, fields in found.items() if fields}


def shown(term):
    return f"{term.text}*" if term.prefix else term.text


def relevance(record, query):
    """The share of the terms that a record holds, the title counting twice (0-1); 1 if named."""
    if hashes_of(record, query):
        return 1.0
    held, title = [places(record, term) for term in asked(query)], SHAPES[kind_of(record)].title
    return sum(bool(names) + (title in names) for names in held) / max(1, 2 * len(held))


def nearest_words(records, terms):
    """The words of these records that are spelt most like the terms."""
    known = {
        word for record in records for text in columns(record).values() for word in text.split()
    }
    return [near for term in terms for near in difflib.get_close_matches(term, known, 1, 0.8)]
