package org.apache.spark.barograph.enforce

import java.util.concurrent.atomic.AtomicLong

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

import org.apache.spark.{TaskContext, TaskKilledException}

@Timeout(60)
class AllowanceTest {
  private val MsNs = 1000000L

  /** Clocks that are moved by hand. They count how often the CPU time was read. */
  private final class Hands extends CpuClock {
    var now = 1L
    var cpu = 0L
    var reads = 0
    override def nowNs(): Long = now
    override def cpuNs(): Long = { reads += 1; cpu }
    override def wallMs(): Long = 1700000000000L + now / MsNs
    override def lookNs: Long = MsNs
  }

  private val clock = new Hands
  private var cut = false
  private val allowance = new Allowance(() => cut, clock)

  /**
   * Works on rows of this length until it must wait or the time is over, and is told to look twenty times a second.
   * Returns for how long it must wait.
   */
  private def work(rowNs: Long, forNs: Long, on: Allowance = allowance): Long = {
    val end = clock.now + forNs
    var told = clock.now
    var wait = 0L
    while (wait == 0L && clock.now < end) {
      if (clock.now - told >= Enforcer.EveryMs * MsNs) { told = clock.now; on.lookSoon() }
      wait = on.waitNs()
      if (wait == 0L) { clock.now += rowNs; clock.cpu += rowNs }
    }
    wait
  }

  /** An epoch that is under way. */
  private def begun(): Unit = assertEquals(0L, work(1000L, Allowance.BeginningNs + MsNs))

  @Test def withoutALimitTheCpuClockIsNotRead(): Unit = {
    begun()
    assertEquals(0L, work(1000L, 2000 * MsNs))
    assertEquals(0, clock.reads)
    assertEquals(0L, allowance.heldSinceMs)
  }

  @Test def theCpuClockIsReadOnceAMillisecondAndNotForEachRow(): Unit = {
    begun()
    allowance.limit(0.99)
    work(1000L, 1000 * MsNs)
    assertTrue(clock.reads > 300 && clock.reads < 3000, s"${clock.reads} times in a second of rows of 1 us")
  }

  @Test def anOrderBitesAtTheNextRow(): Unit = {
    begun()
    allowance.limit(0.05)
    clock.cpu += 10 * MsNs
    clock.now += 10 * MsNs
    allowance.waitNs()
    clock.cpu += 10 * MsNs
    clock.now += 10 * MsNs
    allowance.lookSoon()
    assertTrue(allowance.waitNs() > 0L)
    assertEquals(clock.wallMs() - 10L, allowance.heldSinceMs)
  }

  @Test def rowsThatBecomeSlowDoNotKeepItFromLooking(): Unit = {
    begun()
    allowance.limit(0.5)
    work(10L, 5 * MsNs) // thousands of rows between two looks
    clock.now += 100 * MsNs
    clock.cpu += 100 * MsNs
    allowance.lookSoon() // as the executor's own thread does twenty times a second
    assertTrue(allowance.waitNs() > 0L)
  }

  @Test def aLowerAndAHigherLimitAreTaken(): Unit = {
    begun()
    allowance.limit(0.05)
    val slow = work(100000L, 100 * MsNs)
    assertTrue(slow > 0L)
    allowance.limit(0.9)
    val fast = allowance.waitNs()
    assertTrue(fast < slow, s"$fast against $slow")
    allowance.limit(Allowance.Free)
    assertEquals(0L, work(100000L, 1000 * MsNs))
    assertEquals(0L, allowance.heldSinceMs)
  }

  @Test def afterAWaitItDoesNotOverdraw(): Unit = {
    begun()
    assertEquals(0L, work(200000L, 500 * MsNs)) // it has seen how long these rows take
    allowance.limit(0.05)
    var mostNs = 0L
    for (_ <- 1 to 100) {
      val fromNs = clock.cpu
      var wait = work(200000L, 1000 * MsNs)
      assertTrue(wait > 0L)
      mostNs = Math.max(mostNs, clock.cpu - fromNs)
      while (wait > 0L) {
        clock.now += Math.min(wait, Allowance.SliceNs)
        allowance.rest(1L)
        wait = allowance.waitNs()
      }
    }
    assertTrue(mostNs <= 5 * MsNs, s"$mostNs ns of CPU between two waits")
  }

  /** In an executor with a quota, where its CPU is counted also while it has no limit of its own. */
  @Test def whatItUsedWithoutALimitIsNotOwed(): Unit = {
    val pool = new Pool
    pool.limit(2.0)
    val own = new Allowance(() => cut, clock, pool)
    own.join(isIn = true, 0.1)
    def row(): Long = {
      own.lookSoon()
      val wait = own.waitNs()
      clock.now += MsNs
      clock.cpu += MsNs
      wait
    }
    def limited(): Seq[Long] = {
      own.limit(0.2)
      Seq.fill(15)(row())
    }
    for (_ <- 1 to 1000) assertEquals(0L, row())
    assertTrue(limited().max < 50 * MsNs)
    own.limit(Allowance.Free)
    for (_ <- 1 to 1000) assertEquals(0L, row())
    assertTrue(limited().max < 50 * MsNs)
  }

  @Test def whileAnEpochBeginsThereIsNoLimit(): Unit = {
    allowance.limit(0.01)
    assertTrue(allowance.isLifted(clock.now))
    assertEquals(0L, work(100000L, Allowance.BeginningNs - MsNs))
    assertTrue(work(100000L, 100 * MsNs) > 0L)
    assertFalse(allowance.isLifted(clock.now))
  }

  @Test def aBeginningMayBeShorter(): Unit = {
    val own = new Allowance(() => cut, clock, beginningNs = Allowance.ShortBeginningNs)
    own.limit(0.01)
    assertEquals(0L, work(100000L, Allowance.ShortBeginningNs - MsNs, own))
    assertTrue(work(100000L, 100 * MsNs, own) > 0L)
    assertFalse(own.isLifted(clock.now))
    assertTrue(clock.now < Allowance.BeginningNs)
  }

  /** The twelve epochs of a minute that has epochs of 5 s. */
  @Test def aLimitHoldsOverShortEpochs(): Unit = {
    val fromCpuNs = clock.cpu
    val fromNs = clock.now
    for (_ <- 1 to 12) {
      val own = new Allowance(() => cut, clock, beginningNs = Allowance.ShortBeginningNs)
      own.limit(0.05)
      val endNs = clock.now + 5000 * MsNs
      while (clock.now < endNs) {
        val wait = work(200000L, endNs - clock.now, own)
        if (wait > 0L) {
          clock.now += Math.min(wait, Allowance.SliceNs)
          own.rest(1L)
        }
      }
    }
    val part = (clock.cpu - fromCpuNs).toDouble / (clock.now - fromNs)
    assertEquals(0.06, part, 0.005, s"it used $part of a core")
  }

  @Test def aCutAndTheEndOfInputLiftTheLimit(): Unit = {
    begun()
    allowance.limit(0.01)
    assertTrue(work(100000L, 100 * MsNs) > 0L)
    allowance.rest(1L)
    cut = true
    assertEquals(0L, allowance.waitNs())
    cut = false
    clock.now += MsNs
    assertEquals(0L, work(100000L, MsNs), "nothing is owed for what was done meanwhile")
    assertTrue(work(100000L, 100 * MsNs) > 0L)
    allowance.ends()
    allowance.rest(1L)
    assertEquals(0L, work(100000L, 100 * MsNs))
  }

  @Test def waitsAreShortAndCounted(): Unit = {
    val own = new Allowance(() => false, CpuClock)
    val startNs = System.nanoTime()
    own.rest(60000000000L)
    val tookNs = System.nanoTime() - startNs
    assertTrue(tookNs < 30000000000L, "a cut must be heard")
    val throttled = own.throttledNsBy(System.nanoTime())
    assertTrue(throttled > 0L && throttled <= tookNs)
    own.stoppedBy(5L)
    assertEquals(throttled + 5L, own.throttledNsBy(System.nanoTime()))
  }

  /** A thread that burns CPU between rows gets about its part, by the real clocks. */
  @Test def aRealThreadIsHeldToItsLimit(): Unit = {
    val own = new Allowance(() => false, CpuClock)
    val used, wall = new AtomicLong
    val thread = new Thread(() => {
      val begun = System.nanoTime()
      while (System.nanoTime() - begun < Allowance.BeginningNs + 50 * MsNs) own.await(null)
      own.limit(0.2)
      own.await(null)
      val (fromNs, fromCpu) = (System.nanoTime(), CpuClock.cpuNs())
      while (System.nanoTime() - fromNs < 2000 * MsNs) own.await(null)
      used.set(CpuClock.cpuNs() - fromCpu)
      wall.set(System.nanoTime() - fromNs)
    })
    thread.start()
    thread.join()
    val part = used.get.toDouble / wall.get
    assertTrue(part < 0.27, s"it used $part of a core") // another process may leave it less
  }

  @Test def anInterruptedThreadDoesNotSpin(): Unit = {
    begun()
    allowance.limit(0.01)
    assertTrue(work(100000L, 100 * MsNs) > 0L)
    Thread.currentThread().interrupt()
    allowance.rest(1L)
    allowance.await(null) // returns although it owes
    assertTrue(Thread.interrupted())
  }

  /** One of several is enough: on a busy machine the thread that wakes it may come too late. */
  @Test def aThreadThatWaitsIsWoken(): Unit = {
    val own = new Allowance(() => false, CpuClock)
    val held = Thread.currentThread()
    def restedNs(): Long = {
      val waker = new Thread(() => {
        while (!Thread.interrupted() && held.getState != Thread.State.TIMED_WAITING) Thread.onSpinWait()
        own.wake()
      })
      waker.start()
      val startNs = System.nanoTime()
      own.rest(Allowance.SliceNs)
      val tookNs = System.nanoTime() - startNs
      own.wake() // nobody waits
      waker.interrupt()
      tookNs
    }
    assertTrue(Iterator.continually(restedNs()).take(20).exists(_ < Allowance.SliceNs / 2))
  }

  /** It owes for ever, as these clocks stand still. */
  @Test def aThreadThatIsHeldBackHearsAKill(): Unit = {
    begun()
    allowance.limit(0.01)
    assertTrue(work(100000L, 100 * MsNs) > 0L)
    val task = TaskContext.empty()
    val held = Thread.currentThread()
    val killer = new Thread(() => {
      while (held.getState != Thread.State.TIMED_WAITING) Thread.onSpinWait()
      task.markInterrupted("another attempt won")
    })
    killer.setDaemon(true)
    allowance.lookSoon()
    killer.start()
    val heard = assertThrows(classOf[TaskKilledException], () => allowance.await(task))
    assertEquals("another attempt won", heard.reason)
    killer.join()
  }

  @Test def aDearClockIsReadLessOften(): Unit = {
    assertEquals(1000000L, CpuClock.lookNsFor(200L))
    assertEquals(4000000L, CpuClock.lookNsFor(20000L))
    assertEquals(20000000L, CpuClock.lookNsFor(5000000L))
    assertTrue(CpuClock.costNs > 0L && CpuClock.lookNs >= 1000000L)
  }
}
