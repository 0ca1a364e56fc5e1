package org.apache.spark.barograph.enforce

import java.nio.file.{Files, Path}

import scala.util.Try

/**
 * The CPU that an executor may use, in thousandths of a core. group: of the executor's own control group and those
 * around it, 0 if they have no quota. allowed: the processors it may run on. groupName: executors of one host with the
 * same name share that group.
 */
final case class Capacity(groupName: String, groupMilliCores: Long, allowedMilliCores: Long)

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
    val allowed = Try(allowedIn(Files.readString(Path.of("/proc/self/status")))).toOption.flatten
    Capacity(
      own.map(_.path.toString).getOrElse(""),
      own.flatMap(_.fence).map(q => Math.round(q.cores * 1000.0)).getOrElse(0L),
      1000L * allowed.getOrElse(Runtime.getRuntime.availableProcessors()))
  }

  /** The number of processors in the line Cpus_allowed, which is a mask in hexadecimal digits and commas. */
  private[enforce] def allowedIn(status: String): Option[Int] =
    status.linesIterator.find(_.startsWith("Cpus_allowed:")).map { line =>
      line.stripPrefix("Cpus_allowed:").filter(c => Character.digit(c, 16) >= 0)
        .map(c => Integer.bitCount(Character.digit(c, 16))).sum
    }.filter(_ > 0)
}
