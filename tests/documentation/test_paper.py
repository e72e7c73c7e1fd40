"""The draft of the paper and the citation file: references, figures, and the sections and length that the journal asks for."""

import re
from pathlib import Path

import yaml

import scoreline

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "paper/paper.md").read_text(encoding="utf-8")
BIBLIOGRAPHY = (ROOT / "paper/paper.bib").read_text(encoding="utf-8")
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
SECTIONS = ["Summary", "Statement of need", "State of the field", "Software design", "Research impact statement"]


def test_what_is_cited_is_in_the_bibliography():
    entries = re.findall(r"^@\w+\{(\w+),", BIBLIOGRAPHY, re.MULTILINE)
    assert len(set(entries)) == len(entries)
    assert set(re.findall(r"@([a-z]+\d{4})", PAPER)) == set(entries)
    assert BIBLIOGRAPHY.count("{") == BIBLIOGRAPHY.count("}")


def test_figures_are_there():
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAPER)
    assert figures
    assert all((ROOT / "paper" / name).is_file() for name in figures)


def test_sections_and_length():
    _, header, text = PAPER.split("---\n", 2)
    header = yaml.safe_load(header)
    assert header["bibliography"] == "paper.bib"
    assert {author["affiliation"] for author in header["authors"]} == {each["index"] for each in header["affiliations"]}
    assert re.findall(r"^# (.+)$", text, re.MULTILINE) == [*SECTIONS, "Acknowledgements", "References"]
    assert 750 <= len(text.split()) <= 1750


def test_the_citation_names_the_five_papers():
    titles = dict(re.findall(r"@\w+\{(\w+),.*?title += \{(.+?)\},\n", BIBLIOGRAPHY, re.DOTALL))
    papers = ("zhang2010", "zhang2012", "ghanbari2019", "narasimhan2015", "friedlander2012")
    assert {reference["title"] for reference in CITATION["references"]} == {titles[name] for name in papers}
    assert CITATION["version"] == scoreline.__version__
    assert CITATION["title"] in PAPER
