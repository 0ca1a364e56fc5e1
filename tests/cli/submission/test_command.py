"""``barograph submit`` as a user calls it: what it says, and what it refuses before anything is started."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from barograph.cli.main import main
from barograph.cli.submission import call as calling
from barograph.cli.submission import submit
from barograph.cli.submission.call import SubmitCall
from barograph.cli.support.spark_words import SWITCHES, VALUED
from barograph.config import OPTIONS, resolve
from barograph.config.option import SUBMIT, Scope
from barograph.config.sources import FILE_VARIABLE
from barograph.submit.launcher import SubmitOptions


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[SubmitCall, SubmitOptions]]:
    """What would be run."""
    found: list[tuple[SubmitCall, SubmitOptions]] = []

    def instead(launch: SubmitCall, options: SubmitOptions, *_: object) -> int:
        found.append((launch, options))
        return 7

    monkeypatch.setattr(calling, "run_there", instead)
    monkeypatch.setattr(calling, "run_on_own_cluster", instead)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text("")
    return found


def test_it_advises_unless_told_to_act(
    launched: list[tuple[SubmitCall, SubmitOptions]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "--master", "local[2]", "app.py", "--act", "--help"]) == 7
    (found, options), said = launched.pop(), capsys.readouterr().err
    assert (options.mode, options.policy, options.usual) == ("advise", "", "adaptive")
    assert found.arguments == ("--act", "--help")
    assert said.startswith("-- advise: queries are kept; adaptive only advises, and changes nothing")
    assert "barograph status, barograph decisions" in said
    assert main(["submit", "--act", "--policy", "liu", "app.py"]) == 7
    (found, options), said = launched.pop(), capsys.readouterr().err
    assert (options.mode, options.policy, found.master) == ("act", "liu", "")
    assert said.startswith("-- act: queries are kept; liu acts")


def test_the_file_that_was_named_is_handed_on(
    launched: list[tuple[SubmitCall, SubmitOptions]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program's driver reads options by itself."""
    assert launched == []
    seen: list[str | None] = []

    def run_there(*_: object) -> int:
        seen.append(os.environ.get(FILE_VARIABLE))
        return 0

    monkeypatch.setattr(calling, "run_there", run_there)
    Path("other.toml").write_text('policy = "liu"\n')
    assert main(["submit", "--master", "local[2]", "--config", "other.toml", "app.py"]) == 0
    assert main(["submit", "--master", "local[2]", "app.py"]) == 0
    assert seen == [str(tmp_path / "other.toml"), None]


def test_one_line_names_the_file_of_the_jvm(
    launched: list[tuple[SubmitCall, SubmitOptions]], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["submit", "--master", "local[2]", "app.py"])
    assert capsys.readouterr().err.count("Spark's own output is in ") == 1
    main(["submit", "--verbose", "--master", "local[2]", "app.py"])
    assert "Spark's own output is in " not in capsys.readouterr().err
    (script, _), (verbose, _) = launched
    assert calling.spark_output(script, print) is not None and calling.spark_output(verbose, print) is None
    assert calling.spark_output(replace(script, main_class="app.Main"), print) is None, "it writes to the JVM's own"


def test_only_the_standard_error_of_the_jvm_goes_to_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; print('of the program'); print('of the JVM', file=sys.stderr); sys.exit(4)"
    assert calling._run([sys.executable, "-c", program], dict(os.environ), tmp_path / "spark.log") == 4
    assert capfd.readouterr() == ("of the program\n", "")
    assert (tmp_path / "spark.log").read_text() == "of the JVM\n"


def test_the_policy_of_the_file_holds(launched: list[tuple[SubmitCall, SubmitOptions]]) -> None:
    Path("barograph.toml").write_text('policy = "liu"\nmode = "act"\n')
    main(["submit", "app.py"])
    (_, options) = launched.pop()
    assert (options.policy, options.usual, options.mode) == ("", "liu", "advise"), "only --act lets a policy act"


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ('policy = "liu"\n\nmode = "act"\n', (), "barograph.toml:3"),
        ("", ("--conf", "spark.barograph.mode=act"), "spark.barograph.mode"),
    ],
)
def test_a_mode_that_is_not_used_is_said(
    text: str,
    words: tuple[str, ...],
    place: str,
    launched: list[tuple[SubmitCall, SubmitOptions]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("barograph.toml").write_text(text)
    main(["submit", *words, "app.py"])
    said = capsys.readouterr().err
    assert f"-- mode=act of {place} is not used: --act lets it act\n-- advise: queries are kept" in said
    main(["submit", "--act", *words, "app.py"])
    assert "is not used" not in capsys.readouterr().err
    assert [options.mode for _, options in launched] == ["advise", "act"]


def test_flags_of_options_reach_the_program_as_settings(launched: list[tuple[SubmitCall, SubmitOptions]]) -> None:
    own = ["--master", "local[2]", "--conf", "spark.barograph.cycle=9s", "--policy", "liu"]
    given = ["--history", "seen", "--option", "theta_pct=10", "--option", "lend=false", "--cycle", "4s"]
    given += ["--target-p99", "200", "--release-after", "never", "--in-flight", "100ms", "--recovery", "20s"]
    Path("barograph.toml").write_text('policy = "liu"\n[nodes]\nspare = 2\n')
    assert main(["submit", *own, *given, "app.py", "--history", "its-own"]) == 7
    (found, options) = launched.pop()
    assert (found.arguments, options.policy) == (("--history", "its-own"), "liu")
    confs = [value for name, value in found.options if name == "--conf" and value is not None]
    assert confs[0] == "spark.barograph.cycle=9s", "what is given later holds"
    settings = dict(conf.partition("=")[::2] for conf in confs[1:])
    assert settings == {
        "spark.barograph.history": "seen", "spark.barograph.options": "theta_pct=10,lend=false",
        "spark.barograph.cycle": "4s", "spark.barograph.query.targetP99": "200",
        "spark.barograph.nodes.releaseAfter": "never", "spark.barograph.inFlightMs": "100",
        "spark.barograph.recovery": "20s",
    }  # fmt: skip
    config = resolve(spark=settings)
    assert (config["history"], config["options"]) == ("seen", ("theta_pct=10", "lend=false"))
    assert (config["cycle"], config["query.target-p99"], config["in-flight"]) == (4.0, 200.0, 0.1)
    assert (config["nodes.release-after"], config["nodes.spare"]) == (None, 2), "the program reads the file itself"


def test_no_flag_of_an_option_is_one_of_spark_submit() -> None:
    """An option whose flag would be one is set by --conf."""
    for option in OPTIONS.values():
        if option.flag_name and option.scope in (Scope.CONTROLLER, Scope.QUERY):
            assert (SUBMIT in option.commands) == (option.name != "mode"), "the mode is --act or none"
            assert option.flag_name not in (*VALUED, *SWITCHES)


def test_of_the_file_and_sparks_keys_and_the_flag_the_later_policy_holds(
    launched: list[tuple[SubmitCall, SubmitOptions]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    def chosen(*words: str) -> tuple[str, str]:
        assert main(["submit", *words, "app.py"]) == 7
        (_, options) = launched.pop()
        return options.policy, options.usual

    Path("barograph.toml").write_text('policy = "liu"\n')
    assert chosen() == ("", "liu")
    Path("spark-defaults.conf").write_text("spark.barograph.policy dps\n")
    assert chosen() == ("", "dps")
    Path("mine.conf").write_text("spark.barograph.policy sps\n")
    assert chosen("--properties-file", "mine.conf") == ("", "sps")
    both = ("--properties-file", "mine.conf", "--conf", "spark.barograph.policy=even")
    assert chosen(*both) == ("", "even")
    assert chosen(*both, "--policy", "online") == ("online", "online")


def test_a_wrong_key_in_a_properties_file_is_refused_before_anything_is_started(
    launched: list[tuple[SubmitCall, SubmitOptions]], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.conf").write_text("spark.barograph.policy none\n")
    assert main(["submit", "--properties-file", "mine.conf", "app.py"]) == 2
    assert (launched, "there is no policy 'none'" in capsys.readouterr().err) == ([], True)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "which script? barograph submit [options] SCRIPT.py [ARGUMENT ...]"),
        (["--policy", "none", "app.py"], "there is no policy"),
        (["--nodes", "0", "app.py"], "--nodes must be"),
        (["--cycle", "5", "app.py"], "--cycle must be a time above 0s, not '5': write --cycle 5s"),
        (["--policy", "liu", "--option", "lent=1", "app.py"], "--option must be"),
        (["--supervise", "x", "app.py"], "unrecognized arguments: --supervise=x"),
        (
            ["--conf", "spark.barograph.cylce=5s", "app.py"],
            "there is no key 'spark.barograph.cylce': write spark.barograph.cycle",
        ),
        (["--conf", "spark.barograph.cycle=-5s", "app.py"], "spark.barograph.cycle must be"),
        (["--deploy-mode", "cluster", "app.py"], "--deploy-mode cluster is not supported"),
    ],
)
def test_bad_input_is_one_sentence_and_starts_nothing(
    words: list[str],
    why: str,
    launched: list[tuple[SubmitCall, SubmitOptions]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        code = main(["submit", *words])
    except SystemExit as ended:
        code = int(str(ended.code))
    said = capsys.readouterr().err
    assert (code, launched) == (2, [])
    assert said.startswith("barograph") and said.count("\n") == 1
    assert why in said


def test_the_help_names_the_ways_to_call_it() -> None:
    assert "barograph submit --act" in str(submit.__doc__)
