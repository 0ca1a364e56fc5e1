package org.apache.spark.barograph.lease

import java.nio.file.{Files, Path, Paths}
import java.time.Instant
import java.time.temporal.ChronoUnit
import java.util.UUID

import scala.util.Try

import com.fasterxml.jackson.databind.ObjectMapper

/**
 * The driver that has a lease, as its file tells it. `machine` names a running kernel and its process numbers; only on
 * the same machine do `pid` and `started` (in the kernel's own ticks) say whether the process lives.
 */
final case class Owner(
    id: String, application: String, name: String, host: String, pid: Long, started: String, machine: String,
    since: String) {

  def describe: String =
    if (host.isEmpty) "a driver that has not written its name"
    else s"the application $name ($application) on $host, process $pid, since $since"

  /** Whether this process cannot come back. False where that cannot be known from here. */
  def isGone: Boolean = machine.nonEmpty && machine == Owner.thisMachine && Owner.startOf(pid) != started

  def isThisProcess: Boolean =
    machine.nonEmpty && machine == Owner.thisMachine && pid == Owner.thisPid && started == Owner.startOf(pid)

  def text: String = Owner.json.writeValueAsString(java.util.Map.ofEntries(
    java.util.Map.entry("id", id), java.util.Map.entry("application", application), java.util.Map.entry("name", name),
    java.util.Map.entry("host", host), java.util.Map.entry("pid", Long.box(pid)),
    java.util.Map.entry("started", started), java.util.Map.entry("machine", machine),
    java.util.Map.entry("since", since)))
}

object Owner {
  private val json = new ObjectMapper()

  /** This driver, for a new lease. */
  def here(application: String, name: String): Owner = Owner(
    UUID.randomUUID().toString, application, name, host, thisPid, startOf(thisPid), thisMachine,
    Instant.now().truncatedTo(ChronoUnit.SECONDS).toString)

  /** A file that its writer did not finish is of an unknown owner, which is only known by its renewals. */
  def read(text: String): Owner = Try {
    val node = json.readTree(text)
    def field(name: String) = node.path(name).asText("")
    Owner(
      field("id"), field("application"), field("name"), field("host"), node.path("pid").asLong(0), field("started"),
      field("machine"), field("since"))
  }.getOrElse(Owner("", "", "", "", 0, "", "", ""))

  private def thisPid: Long = ProcessHandle.current().pid()

  private lazy val host: String = Try(java.net.InetAddress.getLocalHost.getHostName).getOrElse("localhost")

  private lazy val thisMachine: String = Try {
    // Processes of another namespace have other numbers.
    val boot = firstLine(Paths.get("/proc/sys/kernel/random/boot_id"))
    s"$boot ${Files.readSymbolicLink(Paths.get("/proc/self/ns/pid"))}"
  }.getOrElse("")

  /** When the process began; empty if there is none. A number that is used again has another beginning. */
  private def startOf(pid: Long): String = Try {
    val line = firstLine(Paths.get(s"/proc/$pid/stat"))
    // The name, in brackets, may contain anything. After it come the state, which is field 3, and so on.
    val fields = line.substring(line.lastIndexOf(')') + 2).split(' ')
    if (fields(0) == "Z" || fields(0) == "X") "" else fields(22 - 3)
  }.getOrElse("")

  private def firstLine(file: Path): String = Files.readAllLines(file).get(0)
}
