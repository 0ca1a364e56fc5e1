"""Where the options of ``barograph submit`` end and the script begins."""

import pytest

from barograph.cli.support.spark_words import marked


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("app.py", "-- app.py"),
        ("app.py --act --log-level debug", "-- app.py --act --log-level debug"),
        ("--master local[2] app.py", "--master=local[2] -- app.py"),
        ("-c a=b --conf=c=d app.py x", "--conf=a=b --conf=c=d -- app.py x"),
        ("--act --driver-java-options -Dx=y -v app.py", "--act --driver-java-options=-Dx=y --verbose -- app.py"),
        ("--nodes 2 --workloads app.py", "--nodes=2 --workloads -- app.py"),
        ("--log-level info -- app.py --act", "--log-level=info -- app.py --act"),
        ("-h", "--help"),
        ("--master", "--master"),
        ("", ""),
    ],
)
def test_the_script_is_marked_and_values_are_tied(words: str, found: str) -> None:
    assert marked(words.split()) == found.split()
