"""The command line of ``barograph submit``: its options, those of spark-submit among them, end at the script.

What follows the script is the script's own, whatever it looks like. Words are only sorted here, not checked.
"""

from collections.abc import Sequence

# Options of spark-submit with a value, and their one line of help.
VALUED = {
    "--master": "spark://HOST:PORT, yarn, k8s://..., local[N]; without it, a small cluster on this machine is started",
    "--deploy-mode": "only client: the driver runs here",
    "--conf": "KEY=VALUE, a setting of Spark; may be given any number of times",
    "--properties-file": "file of settings, instead of Spark's own spark-defaults.conf",
    "--name": "name of the application (default: the name of the script)",
    "--jars": "comma-separated jars for driver and executors; Barograph's is added",
    "--packages": "comma-separated Maven coordinates of jars",
    "--exclude-packages": "what --packages must not bring",
    "--repositories": "more Maven repositories for --packages",
    "--py-files": "comma-separated files for the Python path of driver and executors",
    "--files": "comma-separated files for the working folder of each executor",
    "--archives": "comma-separated archives for the working folder of each executor",
    "--driver-memory": "heap of the driver",
    "--driver-java-options": "options of the driver's Java",
    "--driver-library-path": "library path of the driver",
    "--driver-class-path": "class path of the driver",
    "--driver-cores": "cores of the driver, where the cluster manager takes them",
    "--executor-memory": "heap of each executor",
    "--executor-cores": "cores of each executor, which are its seats",
    "--total-executor-cores": "cores of all executors, on a standalone cluster",
    "--num-executors": "executors, on YARN and Kubernetes",
    "--queue": "queue on YARN",
    "--principal": "Kerberos principal",
    "--keytab": "file with its keys",
    "--proxy-user": "user to act as",
    "--remote": "not supported: a session of Spark Connect",
    "--class": "main class of a jar, for an application in Scala or Java",
}
SWITCHES = {
    "--verbose": "spark-submit says what it does",
    "--load-spark-defaults": "spark-defaults.conf too, where --properties-file is given",
}
SHORT = {"-c": "--conf", "-v": "--verbose", "-h": "--help"}
# Of barograph submit itself; its other options have a value.
_OWN_SWITCHES = ("--act", "--workloads", "--help")


def marked(words: Sequence[str]) -> list[str]:
    """The words with ``--`` in front of the script, and each value tied to its option, so that it may begin with a
    dash."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*found, word, *rest]
        if not word.startswith("-") or word == "-":
            return [*found, "--", word, *rest]
        name, equals, _ = word.partition("=")
        name = SHORT.get(name, name)
        if equals:
            found.append(name + word[word.index("=") :])
        elif name in SWITCHES or name in _OWN_SWITCHES:
            found.append(name)
        else:
            value = next(rest, None)
            found.append(name if value is None else f"{name}={value}")
    return found
