package org.apache.spark.barograph.enforce

import java.io.IOException
import java.nio.file.{Files, NoSuchFileException, Path, StandardOpenOption}

import scala.jdk.CollectionConverters._
import scala.util.{Try, Using}

import org.apache.spark.barograph.orders.{InstanceKey, Share}

/**
 * The control groups of this executor's instances: applies what [[GroupWrites]] lists, and cleans up. After an error
 * everything is released, and the next call begins anew. Used by one thread. write: a text into a file that exists.
 */
final class Groups(find: () => OwnGroup, pid: Long, write: (Path, String) => Unit = Groups.write) {
  private var group: ExecutorGroup = _
  private var written = Written.nothing
  private var fence = Option.empty[Quota]

  /** Limits these threads and no others from now on. Throws if a group cannot be written. */
  def hold(held: Map[InstanceKey, (Int, Share)]): Unit =
    try {
      if (group == null) open()
      val found = group.own.fence
      val after = GroupWrites.wanted(group.own.version, found, held)
      // Version 1 lets a fence be put up only where no group below has more, so quotas may have been lifted for that.
      if (found != fence) written = written.unsure
      fence = found
      straysHome()
      val gone = GroupWrites.gone(group, written, after)
      GroupWrites.writes(group, written, after).foreach(apply(_, group.all))
      written = after
      gone.foreach(remove)
    } catch {
      case e: Exception =>
        release()
        throw e
    }

  /** For how long (ns) each instance was stopped in its group since that was made. */
  def throttledNs: Map[InstanceKey, Long] = if (group == null) Map.empty else {
    val (key, unitNs) = if (group.own.version == 2) ("throttled_usec", 1000L) else ("throttled_time", 1L)
    written.groups.keys.flatMap { instance =>
      Try(Files.readString(group.of(instance).resolve("cpu.stat")).linesIterator.map(_.split(" ")).collectFirst {
        case Array(`key`, value) => instance -> value.toLong * unitNs
      }).toOption.flatten
    }.toMap
  }

  /** Moves threads back and removes the groups. */
  def release(): Unit = if (group != null) {
    val of = group
    group = null
    written = Written.nothing
    clear(of.own, of.all)
  }

  private def open(): Unit = {
    val own = find()
    val found = ExecutorGroup(own, pid, Files.exists(own.path.resolve(own.savings)))
    sweep(own)
    Files.createDirectories(found.all)
    group = found
  }

  /** Groups of executors that are gone, and of an earlier attempt of this one. */
  private def sweep(own: OwnGroup): Unit = folders(own.path).foreach { folder =>
    val name = folder.getFileName.toString
    val of = if (name.startsWith(GroupWrites.Prefix)) name.stripPrefix(GroupWrites.Prefix).toLongOption else None
    if (of.exists(p => p == pid || !Files.exists(Path.of(s"/proc/$p")))) clear(own, folder)
  }

  private def clear(own: OwnGroup, all: Path): Unit = {
    val below = folders(all)
    for (folder <- below; tid <- threadsIn(own, folder)) Try(apply(GroupWrites.home(own, tid), all))
    (below :+ all).foreach(remove)
    // Refused as long as another executor has groups here.
    if (own.version == 2) Try(write(own.path.resolve("cgroup.subtree_control"), "-cpu"))
  }

  /** A thread that an instance's thread starts begins in its group; it is not an instance, so it is moved back. */
  private def straysHome(): Unit = for {
    (instance, held) <- written.groups
    tid <- threadsIn(group.own, group.of(instance)) if tid != held.tid
  } apply(GroupWrites.home(group.own, tid), group.all)

  private def threadsIn(own: OwnGroup, folder: Path): Seq[Int] =
    Try(Files.readString(folder.resolve(own.threads)).linesIterator.flatMap(_.trim.toIntOption).toSeq).getOrElse(Nil)

  private def folders(of: Path): Seq[Path] =
    Try(Using.resource(Files.list(of))(_.iterator().asScala.filter(Files.isDirectory(_)).toList)).getOrElse(Nil)

  private def remove(folder: Path): Unit = Try(Files.deleteIfExists(folder)) // it is in use: removed the next time

  /**
   * One write. A group of ours (in `all`) is made if it does not exist. A thread that has just ended needs no group.
   */
  private def apply(one: Write, all: Path): Unit =
    try {
      if (one.path.startsWith(all)) Files.createDirectories(one.path.getParent)
      write(one.path, one.content)
    } catch {
      case e: IOException if String.valueOf(e.getMessage).contains("No such process") => ()
      case e: NoSuchFileException => throw new IOException(s"${one.path}: there is no such file", e)
      case e: IOException =>
        val why = String.valueOf(e.getMessage)
        throw new IOException(if (why.contains(one.path.toString)) why else s"${one.path}: $why", e)
    }
}

object Groups {
  private def write(file: Path, text: String): Unit =
    Using.resource(Files.newOutputStream(file, StandardOpenOption.WRITE))(_.write(text.getBytes))
}
