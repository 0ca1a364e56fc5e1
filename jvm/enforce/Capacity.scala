package org.apache.spark.barograph.enforce

import java.nio.file.{Files, Path}

import scala.util.Try

/**
 * The CPU that an executor may use, in thousandths of a core. group: of the executor's own control group and those
 * around it, 0 if they have no quota. allowed: the processors it may run on. groupName: executors of one host with the
 * same name share that quota.
 */
final case class Capacity(groupName: String, groupMilliCores: Long, allowedMilliCores: Long) {
  /** The part of the quota that is for each of so many executors; 0 if there is no quota. */
  def part(sharers: Int): Long = groupMilliCores / Math.max(1, sharers)
}

object Capacity {
  val unknown: Capacity = Capacity("", 0L, 0L)
  private val FreshNs = 2000000000L
  private var read = unknown
  private var readNs = 0L

  /** Of this process. A few files are read, so it is remembered for a moment. */
  def now(): Capacity = synchronized {
    val nowNs = System.nanoTime()
    if (read == unknown || nowNs - readNs >= FreshNs) {
      read = look()
      readNs = nowNs
    }
    read
  }

  private def look(): Capacity = {
    val own = Try(OwnGroup.find()).toOption
    val fenced = own.flatMap(_.fenced)
    val allowed = Try(allowedIn(Files.readString(Path.of("/proc/self/status")))).toOption.flatten
    Capacity(
      own.map(of => nameOf(fenced.fold(of.path)(_._1))).getOrElse(""),
      fenced.map { case (_, quota) => Math.round(quota.cores * 1000.0) }.getOrElse(0L),
      1000L * allowed.getOrElse(Runtime.getRuntime.availableProcessors()))
  }

  /** Every container may see its own group at the same path; the number that the kernel gives a group is its own. */
  private[enforce] def nameOf(group: Path): String =
    s"$group ${Try(Files.getAttribute(group, "unix:ino").toString).getOrElse("")}"

  /** The number of processors in the line Cpus_allowed, which is a mask in hexadecimal digits and commas. */
  private[enforce] def allowedIn(status: String): Option[Int] =
    status.linesIterator.find(_.startsWith("Cpus_allowed:")).map { line =>
      line.stripPrefix("Cpus_allowed:").filter(c => Character.digit(c, 16) >= 0)
        .map(c => Integer.bitCount(Character.digit(c, 16))).sum
    }.filter(_ > 0)
}
