package org.apache.spark.barograph.lease

import java.util.UUID

import scala.util.Try
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

/** A checkpoint has another owner, which lives. */
class LeaseRefused(message: String) extends IllegalArgumentException(message)

/** The owner was taken for dead, and another driver has the checkpoint now. */
class LeaseLost(message: String) extends IllegalStateException(message)

/**
 * One driver's right to write to one checkpoint. In the checkpoint's folder `lease` the owners are numbered; the
 * highest number has the lease. NUMBER.owner describes that owner and is renewed; NUMBER.released says that it is over.
 * The folder NUMBER is the fence: every file of the checkpoint is first written there and then moved to its place. A
 * driver that takes the lease over makes the next number and moves the fences of all lower numbers away, so that an
 * owner that was only slow can move nothing any more, not even if it was stopped immediately before.
 */
final class Lease private (val root: Path, val number: Long, val owner: Owner, files: LeaseFiles) {
  private val folder = Lease.folder(root)
  private val fence = new Path(folder, number.toString)

  /** A name for a new file behind the fence. */
  def temporary(): Path = new Path(fence, UUID.randomUUID().toString)

  def stands: Boolean = files.exists(fence)

  def renew(): Unit = files.renew(new Path(folder, s"$number.owner"))

  /** The fence goes first: nothing can be written any more when the next owner learns of it. */
  def release(): Unit = {
    files.delete(fence)
    files.createNew(new Path(folder, s"$number.released"), "")
  }

  def lost: LeaseLost = new LeaseLost(
    Lease.highest(files, folder).filter(_ > number).flatMap(n => Lease.ownerOf(files, folder, n)) match {
      case Some(next) =>
        s"the checkpoint $root was taken over by ${next.describe}, because this driver had not renewed its lease; " +
          "this query must not go on here: stop the other one first if it is to run here"
      case None =>
        s"the lease on the checkpoint $root is gone, because its folder was removed; the query must not go on, " +
          "since another driver may use it: start it again"
    })
}

object Lease {
  /** How long an owner that renews its lease is watched before it is refused: it may be about to end. */
  private val RefuseAfterMs = 5000L
  private val LookMs = 100L
  /** A renewal is made so many times within the patience of a driver that waits. */
  val BeatsInPatience = 10

  private def folder(root: Path) = new Path(root, "lease")

  /**
   * Take the lease, from an owner that is gone at once, and from one that does not renew it for `patienceMs`; 0: from
   * none that may be alive. Raises LeaseRefused if there is an owner that lives.
   */
  def acquire(root: Path, owner: Owner, files: LeaseFiles, patienceMs: Long): Lease = {
    val all = folder(root)
    files.makeFolder(all)
    var mine: Option[Lease] = None
    while (mine.isEmpty) {
      val top = highest(files, all)
      top.foreach(awaitFree(root, files, _, patienceMs))
      val number = top.getOrElse(0L) + 1
      // Exactly one of several drivers makes it; the others look again.
      if (create(files, new Path(all, s"$number.owner"), owner)) {
        files.makeFolder(new Path(all, number.toString))
        // A driver with a higher number, if it is not seen here, finds the fence that was just made, and moves it away.
        if (highest(files, all).contains(number)) mine = Some(new Lease(root, number, owner, files))
        else files.delete(new Path(all, number.toString))
      }
    }
    fenceOff(files, all, mine.get.number)
    mine.get
  }

  private def create(files: LeaseFiles, file: Path, owner: Owner): Boolean =
    try files.createNew(file, owner.text)
    catch { case NonFatal(e) => Try(files.delete(file)); throw e } // a full disk leaves an empty file

  /** From here on no lower number can write. All of them: a driver may have died before it did this itself. */
  private def fenceOff(files: LeaseFiles, all: Path, number: Long): Unit = {
    def isLower(name: String) = numberOf(name).exists(_ < number)
    val before = files.list(all).filter(isLower)
    before.filter(name => name.forall(_.isDigit)).foreach { name =>
      val away = new Path(all, s"$name.over-${UUID.randomUUID()}")
      try files.move(new Path(all, name), away)
      catch { case NonFatal(e) => if (files.exists(new Path(all, name))) throw e }
    }
    // What is left of them is of no use, and no harm if it stays.
    files.list(all).filter(isLower).foreach(name => Try(files.delete(new Path(all, name))))
  }

  /** Wait until the lease of this number can be taken. */
  private def awaitFree(root: Path, files: LeaseFiles, number: Long, patienceMs: Long): Unit = {
    val all = folder(root)
    val file = new Path(all, s"$number.owner")
    val began = System.nanoTime()
    def passedMs(since: Long) = (System.nanoTime() - since) / 1000000
    var stamp = Try(files.stamp(file)).toOption
    var renewed = began
    var isRenewed = false
    def refused = new LeaseRefused(
      s"the checkpoint $root is in use by ${ownerOf(files, all, number).fold("another driver")(_.describe)}: " +
        "stop that one first, or choose another checkpoint")
    while (!isFree(files, all, number)) {
      if (patienceMs == 0) throw refused
      val now = Try(files.stamp(file)).toOption
      if (now != stamp) {
        stamp = now
        renewed = System.nanoTime()
        isRenewed = true
      }
      if (passedMs(renewed) >= patienceMs) return
      val isAlive = isRenewed && passedMs(renewed) < patienceMs * 3 / BeatsInPatience
      if (isAlive && passedMs(began) >= math.min(RefuseAfterMs, patienceMs / 2)) throw refused
      Thread.sleep(LookMs)
    }
  }

  /** A driver of this very process that has not released its lease has ended, or it would not ask. */
  private def isFree(files: LeaseFiles, all: Path, number: Long): Boolean =
    highest(files, all).forall(_ != number) || files.exists(new Path(all, s"$number.released")) ||
      ownerOf(files, all, number).exists(o => o.isGone || o.isThisProcess)

  private def highest(files: LeaseFiles, all: Path): Option[Long] =
    files.list(all).filter(_.endsWith(".owner")).flatMap(numberOf).maxOption

  private def numberOf(name: String): Option[Long] = name.takeWhile(_ != '.').toLongOption

  private def ownerOf(files: LeaseFiles, all: Path, number: Long): Option[Owner] =
    Try(Owner.read(files.read(new Path(all, s"$number.owner")))).toOption
}
