package org.apache.spark.barograph.telemetry

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.barograph.enforce.Allowance
import org.apache.spark.barograph.orders.{Cuts, HowFar, InstanceKey}
import org.apache.spark.barograph.planner.Marks

/** One instance in one epoch, as its own thread sees it. Times are milliseconds since 1970; 0 means not yet. */
final class Life(
    val topology: String,
    val runId: String,
    val epoch: Long,
    val operator: String,
    val index: Int,
    val executor: String,
    val pid: Int,
    val tid: Int,
    val startedMs: Long) {
  @volatile var endedMs: Long = 0L
  /** Rows read from the source in this epoch. */
  val rowsRead = new Counter
  val meter = new Meter
  val key: InstanceKey = InstanceKey(topology, operator, index)
  private val cut = Cuts.of(runId)
  val allowance =
    new Allowance(() => cut.epoch >= epoch, beginningNs = WarmOperators.here.beginningNs(runId, operator))
  /** Whether it reads from a source; whether it rests and has no row left to hand on. */
  @volatile var reads: Boolean = false
  @volatile var rests: Boolean = false
  /** For reports, in nanoseconds: when it was last reported, and when with latencies; 0 if it was not. */
  var toldNs, latencyToldNs: Long = 0L

  private val thread = Thread.currentThread().getId
  private val startedNs = System.nanoTime()
  private val startedCpuNs = Lives.threads.getCurrentThreadCpuTime
  // Set by the instance's own thread when it ends: no other thread can read how much CPU it had used by then.
  private var endedNs = 0L
  private var endedCpuNs = 0L

  // Rows out, by centisecond of wall time. Written by the task's thread, read by the reporter.
  private val centiseconds = new ConcurrentLinkedQueue[Array[Long]]()
  private var current = 0L
  private var count = 0L
  private var taken = 0L

  /** A row leaves the topology; returns when. */
  def row(): Long = {
    val now = System.currentTimeMillis()
    val centisecond = now / 10
    if (centisecond != current) flush(centisecond)
    count += 1
    meter.out.increment()
    now
  }

  private def flush(next: Long): Unit = {
    if (count > 0) centiseconds.add(Array(current, count))
    current = next
    count = 0
  }

  def end(): Unit = {
    flush(0L)
    endedNs = System.nanoTime()
    endedCpuNs = Lives.threads.getCurrentThreadCpuTime
    endedMs = System.currentTimeMillis()
    WarmOperators.here.ran(runId, operator, endedNs - startedNs, meter.executed.value + rowsRead.value)
  }

  /** (centisecond, count) pairs since the last call, and how many there were before. Called by the reporter. */
  def takeCentiseconds(): (Long, Array[Long]) = {
    val found = mutable.ArrayBuilder.make[Long]
    val before = taken
    var pair = centiseconds.poll()
    while (pair != null) { found ++= pair; taken += 1; pair = centiseconds.poll() }
    (before, found.result())
  }

  /** The meter as of now. Called by the reporter; latencies are included only on request, because they are long. */
  def metered(withLatency: Boolean): MeterReport = {
    val ended = endedMs > 0
    val nowNs = if (ended) endedNs else System.nanoTime()
    val cpuNs = (if (ended) endedCpuNs else Lives.threads.getThreadCpuTime(thread)) - startedCpuNs
    val idleNs = meter.idleNsBy(nowNs)
    val blockedNs = meter.blockedNsBy(nowNs)
    val sent = meter.sent.values
    val load = meter.load
    val read = rowsRead.value
    val due = if (load == null) -1L else load.dueRows(System.currentTimeMillis())
    val isKnown = due >= 0L
    val position = if (isKnown) load.position(read) else -1L
    def latency(of: Histogram): Array[Long] = if (of == null || !withLatency) Array.emptyLongArray else of.totals()
    MeterReport(
      meter.executed.value + read, sent.sum + meter.out.value, Math.max(0L, cpuNs),
      Math.max(0L, nowNs - startedNs - idleNs - blockedNs), idleNs, blockedNs,
      sent, latency(meter.due), latency(meter.read),
      if (isKnown) load.load else -1L, if (isKnown) load.start else -1L, position, Math.max(position, due),
      allowance.throttledNsBy(nowNs), if (ended) 0L else allowance.heldSinceMs, latency(meter.record),
      if (isKnown) load.ageMs else 0L)
  }
}

/**
 * An executor's report of a life: its state now, and rows out since the last report as (centisecond, count) pairs.
 * outputBefore: how many pairs earlier reports had, so that those that come twice are known.
 */
final case class LifeReport(
    topology: String, runId: String, epoch: Long, operator: String, index: Int, executor: String,
    pid: Int, tid: Int, startedMs: Long, endedMs: Long, rowsRead: Long,
    outputBefore: Long, output: Array[Long], meter: MeterReport)

/** What is to be reported of an executor's instances. */
trait ReportedLives {
  /** Whether an instance has begun or ended since the last report, or a report has not reached the driver. */
  def hasNews: Boolean

  /** For a report that the driver may miss: what is new, and what it has not acknowledged. */
  def report(): Seq[LifeReport]

  /** The driver has taken the last report. */
  def heard(): Unit

  /**
   * For a report that the driver asks for. heard: it has taken the last one that it asked for; what it has not taken is
   * repeated here, or by the next report.
   */
  def answer(heard: Boolean): Seq[LifeReport]
}

/** Every instance that runs, or has just run, in this executor. */
object Lives extends ReportedLives {
  private[barograph] val threads = ManagementFactory.getThreadMXBean
  private val here = new ThreadLocal[Life]()
  private val begun = new ConcurrentLinkedQueue[Life]()
  private val present = ConcurrentHashMap.newKeySet[Life]()
  private val running = mutable.LinkedHashSet[Life]()
  private var unheard = Seq.empty[LifeReport]
  // Of the last answer to the driver. It is no news: the driver says with its next question whether it has taken it.
  private var answered = Seq.empty[LifeReport]
  private val TurnNs = 200000000L
  private val LatencyNs = 4 * TurnNs
  // Reports of ended instances, kept while the driver does not answer.
  private val UnheardKept = 10000

  def begin(marks: Marks, operator: String, index: Int, context: TaskContext): Life = {
    val (pid, tid) = osThread()
    val life = new Life(marks.topology, marks.runId, marks.epoch, operator, index, SparkEnv.get.executorId,
      pid, tid, System.currentTimeMillis())
    runAs(life)
    begin(life)
    context.addTaskCompletionListener[Unit] { _ => life.end(); present.remove(life); here.remove() }
    life
  }

  /** The calling thread is this instance's from now on. */
  private[barograph] def runAs(life: Life): Unit = here.set(life)

  private[barograph] def begin(life: Life): Unit = {
    begun.add(life)
    present.add(life)
  }

  /** The instances that run here now. */
  private[barograph] def now: Iterable[Life] = present.asScala

  /** The instance that runs on the calling thread; null if there is none. */
  def current: Life = here.get()

  /** How far the instances of a topology are that run here now. May be called by any thread. */
  def howFar(topology: String): Seq[HowFar] = present.asScala.toSeq.filter(_.topology == topology).map { life =>
    // Read in this order: an instance that waits after it has taken a row has sent everything that the row caused.
    // Each read is volatile, and so is the write by which a wait begins: the rows sent before it are all seen.
    val taken = life.meter.executed.value
    val waits = if (life.reads) life.rests else life.meter.idle
    HowFar(life.runId, life.epoch, life.operator, life.index, life.reads, waits, taken, life.meter.sent.values.sum)
  }

  /** (process, thread) numbers of the operating system; 0 if they are unknown. */
  private def osThread(): (Int, Int) =
    try {
      val parts = Files.readSymbolicLink(Path.of("/proc/thread-self")).toString.split("/")
      (parts(0).toInt, parts(2).toInt)
    } catch { case _: Exception => (0, 0) }

  def hasNews: Boolean = !begun.isEmpty || synchronized { unheard.nonEmpty || running.exists(_.endedMs > 0) }

  def report(): Seq[LifeReport] = synchronized {
    val all = unheard ++ answered ++ fresh()
    unheard = worthRepeating(all)
    answered = Seq.empty
    all
  }

  /** What no later report of the same life says again. */
  private def worthRepeating(reports: Seq[LifeReport]): Seq[LifeReport] =
    reports.filter(r => r.endedMs > 0 || r.output.nonEmpty).takeRight(UnheardKept)

  def answer(heard: Boolean): Seq[LifeReport] = synchronized {
    val all = (if (heard) Seq.empty else answered) ++ fresh()
    answered = worthRepeating(all)
    all
  }

  /** Until it is called, the last report of an ended life is repeated. */
  def heard(): Unit = synchronized { unheard = Seq.empty }

  /**
   * Instances that began or ended, and the others, those of a crowded executor not each time. Latencies are reported
   * about once a second and at the end.
   */
  private[barograph] def fresh(): Seq[LifeReport] = fresh(System.nanoTime())

  private[barograph] def fresh(nowNs: Long): Seq[LifeReport] = synchronized {
    val reports = mutable.ArrayBuffer[LifeReport]()
    var next = begun.poll()
    while (next != null) { running += next; next = begun.poll() }
    // Few instances are reported each time, so that short cycles are exact; many are not, to keep the cost low.
    val restNs = Math.min(4, running.size / 40) * TurnNs
    running.toSeq.foreach { life =>
      val ended = life.endedMs
      if (ended > 0 || life.toldNs == 0L || nowNs - life.toldNs >= restNs) {
        val withLatency = ended > 0 || nowNs - life.latencyToldNs >= LatencyNs
        if (withLatency) life.latencyToldNs = nowNs
        life.toldNs = nowNs
        val (outputBefore, output) = life.takeCentiseconds()
        reports += LifeReport(life.topology, life.runId, life.epoch, life.operator, life.index, life.executor,
          life.pid, life.tid, life.startedMs, ended, life.rowsRead.value, outputBefore, output,
          life.metered(withLatency))
      }
      if (ended > 0) running -= life
    }
    reports.toSeq
  }
}
