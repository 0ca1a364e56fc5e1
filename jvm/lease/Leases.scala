package org.apache.spark.barograph.lease

import java.io.IOException
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

/**
 * The leases of this driver, by the folders of their checkpoints. A thread renews them. A lease is given back when its
 * query has ended, but for those that are kept, because a supervisor may start the query again.
 */
object Leases {
  /** A query that was to be started and is not active so long afterwards was not started. */
  private val StartMs = 60000L

  /** Of one checkpoint. `lease`: None when it was given back, and any write takes it again. `isOver`: no write may. */
  private final class Entry(val take: Long => Lease, val patienceMs: Long) {
    @volatile var lease: Option[Lease] = None
    var isKept = false
    var isOver = false
    var wasActive = false
    var takenAt: Long = 0

    def held: Lease = synchronized {
      lease match {
        case Some(found) => found
        case None if isOver => throw new IOException("the application that wrote to this checkpoint has ended")
        // Nothing waits here: an owner that has to be watched is an owner.
        case None => renewed(0)
      }
    }

    def renewed(waitMs: Long): Lease = synchronized {
      val found = take(waitMs)
      lease = Some(found)
      isOver = false
      wasActive = false
      takenAt = System.nanoTime()
      found
    }
  }

  private val troubles = new Troubles
  private val entries = new ConcurrentHashMap[Path, Entry]()
  @volatile private var active: () => Option[Set[Path]] = () => None
  @volatile private var beating: Option[Thread] = None

  /** checkpoints: those of the queries that run now; None where that is not known, and then no lease is given back. */
  def watch(checkpoints: () => Option[Set[Path]]): Unit = active = checkpoints

  /** A query is to be started on this checkpoint. Raises LeaseRefused if another driver has it. */
  def ensure(root: Path, owner: => Owner, files: LeaseFiles, patienceMs: Long): Unit = {
    val fresh = new Entry(wait => Lease.acquire(root, owner, files, wait), patienceMs)
    val entry = Option(entries.putIfAbsent(root, fresh)).getOrElse(fresh)
    entry.synchronized {
      if (entry.lease.exists(_.stands)) {
        entry.wasActive = false
        entry.takenAt = System.nanoTime()
      } else entry.renewed(patienceMs)
    }
    beat()
  }

  /**
   * The lease that a file of a checkpoint is written under; None if this process has none, as in an executor. If it was
   * given back, it is taken again, but not for state, which state stores also write after their query has ended, and
   * not for what was begun behind the fence that is gone.
   */
  def over(path: Path): Option[Lease] =
    if (entries.isEmpty) None
    else Iterator.iterate(path)(_.getParent).takeWhile(_ != null).find(entries.containsKey).flatMap { root =>
      val entry = entries.get(root)
      def isIn(folder: String) = path.toString.startsWith(s"$root/$folder/")
      if (entry.lease.isEmpty && (isIn("state") || isIn("lease"))) None else Some(entry.held)
    }

  /** Whether the lease stays when the query ends. */
  def keep(root: Path, isKept: Boolean): Unit = Option(entries.get(root)).foreach { entry =>
    entry.synchronized {
      entry.isKept = isKept
      entry.wasActive = true // only a query that was started is kept
    }
    if (!isKept) active().foreach(giveBackIfIdle(root, entry, _))
  }

  /** Give back the leases of queries that have ended. */
  private def look(): Unit = active().foreach { now =>
    entries.asScala.foreach { case (root, entry) => giveBackIfIdle(root, entry, now) }
  }

  /** The application ends. What still runs of it writes no more. */
  def end(): Unit = entries.values.asScala.foreach { entry =>
    entry.synchronized {
      entry.isOver = true
      entry.isKept = false
      entry.lease.foreach(giveBack)
      entry.lease = None
    }
  }

  private def giveBackIfIdle(root: Path, entry: Entry, now: Set[Path]): Unit = entry.synchronized {
    if (now(root)) entry.wasActive = true
    else if (!entry.isKept && (entry.wasActive || (System.nanoTime() - entry.takenAt) / 1000000 >= StartMs)) {
      // A query that has lost its lease may still be about to write.
      entry.lease.foreach(lease => if (lease.stands) giveBack(lease) else entry.isOver = true)
      entry.lease = None
    }
  }

  /** Where it fails, the next driver has to watch this one until it is surely gone. */
  private def giveBack(lease: Lease): Unit =
    troubles.telling(s"giving back the lease on ${lease.root}")(lease.release())

  private def beat(): Unit = synchronized {
    if (!beating.exists(_.isAlive)) {
      val thread = new Thread(() => while (true) {
        val beatsMs = entries.values.asScala.map(_.patienceMs / Lease.BeatsInPatience)
        Thread.sleep(beatsMs.minOption.getOrElse(1000L).max(50L))
        // Not under the entry's lock, which a write may hold while the file system hangs.
        entries.values.asScala.flatMap(_.lease).foreach { lease =>
          troubles.telling(s"renewing the lease on ${lease.root}")(lease.renew())
        }
        troubles.telling("looking after leases")(look())
      }, "barograph-leases")
      thread.setDaemon(true)
      thread.start()
      beating = Some(thread)
    }
  }
}
