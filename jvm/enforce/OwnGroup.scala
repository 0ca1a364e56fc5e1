package org.apache.spark.barograph.enforce

import java.io.IOException
import java.nio.file.{Files, Path}

import scala.util.Try

/** CPU time in each period. Compared exactly, as the kernel does, not as rounded fractions. */
final case class Quota(quotaUs: Long, periodUs: Long) {
  def isAbove(other: Quota): Boolean = quotaUs * other.periodUs > other.quotaUs * periodUs
  def cores: Double = quotaUs.toDouble / periodUs
}

/**
 * The control group of the cpu controller in which a process runs. path: its folder. root: where the hierarchy is
 * mounted. version: 1 or 2.
 */
final case class OwnGroup(version: Int, path: Path, root: Path) {
  def threads: String = if (version == 1) "tasks" else "cgroup.threads"

  /** The file with the quota that a group may save (burst); kernels before 5.14 have none. */
  def savings: String = if (version == 1) "cpu.cfs_burst_us" else "cpu.max.burst"

  /** The quota of a group as the kernel has it; None if it has none. */
  def quotaOf(group: Path): Option[Quota] = {
    def text(file: String): String = Files.readString(group.resolve(file)).trim
    val both = if (version == 2) text("cpu.max") else s"${text("cpu.cfs_quota_us")} ${text("cpu.cfs_period_us")}"
    both.split(" ") match {
      case Array(quota, period) if quota != "max" && quota != "-1" => Some(Quota(quota.toLong, period.toLong))
      case _ => None
    }
  }

  /** The least of its own quota and those of the groups around it, as far as they can be read. */
  def fence: Option[Quota] = fenced.map(_._2)

  /** The group that has the least quota, and that quota. */
  def fenced: Option[(Path, Quota)] = {
    val around = Iterator.iterate(path)(_.getParent).takeWhile(p => p != null && p.startsWith(root))
    around.flatMap(p => Try(quotaOf(p)).toOption.flatten.map(p -> _))
      .reduceOption((a, b) => if (a._2.isAbove(b._2)) b else a)
  }
}

object OwnGroup {
  def find(): OwnGroup = {
    def text(file: String): String = Files.readString(Path.of(s"/proc/self/$file"))
    in(text("mountinfo"), text("cgroup")).getOrElse(throw new IOException("this machine has no cpu control groups"))
  }

  /** From the texts of /proc/self/mountinfo and /proc/self/cgroup. Version 1, if the cpu controller is there. */
  private[enforce] def in(mounts: String, own: String): Option[OwnGroup] = {
    val found = mounts.linesIterator.flatMap { line =>
      val (left, right) = line.splitAt(line.indexOf(" - "))
      val (fields, kind) = (left.split(" "), right.stripPrefix(" - ").split(" "))
      if (fields.length < 5 || kind.length < 3) None
      else {
        val (root, point) = (Path.of(plain(fields(3))), Path.of(plain(fields(4))))
        if (kind(0) == "cgroup" && kind(2).split(",").contains("cpu")) path(own, "cpu").map(group(1, _, root, point))
        else if (kind(0) == "cgroup2") path(own, "").map(group(2, _, root, point))
        else None
      }
    }.toSeq
    found.find(_.version == 1).orElse(found.headOption)
  }

  private def group(version: Int, own: Path, root: Path, point: Path): OwnGroup =
    OwnGroup(version, if (own.startsWith(root)) point.resolve(root.relativize(own)).normalize() else point, point)

  /** of: a controller. Lines are number:controllers:path; that of version 2 has no controllers. */
  private def path(own: String, of: String): Option[Path] = own.linesIterator.map(_.split(":", 3)).collectFirst {
    case Array(number, names, path)
      if (if (of.isEmpty) number == "0" && names.isEmpty else names.split(",").contains(of)) =>
      Path.of(path)
  }

  private def plain(text: String): String =
    """\\([0-7]{3})""".r.replaceAllIn(text, found => Integer.parseInt(found.group(1), 8).toChar.toString)
}
