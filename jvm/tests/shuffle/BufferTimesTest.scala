package org.apache.spark.barograph.shuffle

import java.util.SplittableRandom
import java.util.concurrent.atomic.AtomicReference

import io.netty.buffer.Unpooled
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

class BufferTimesTest {
  private def first(runs: TimeRuns): Long = {
    val buffer = Unpooled.buffer()
    runs.write(buffer)
    val read = new TimeRuns
    read.read(buffer, buffer.readableBytes())
    read.next()
  }

  @Test def theNextBufferIsFilledWhileTheFirstIsSent(): Unit = {
    val times = new BufferTimes
    times.row(50L, fresh = true)
    times.row(10L, fresh = true)
    times.row(5L, fresh = false)
    assertEquals(50L, first(times.next()))
    assertEquals(10L, first(times.next()))
  }

  /** The order of calls of Spark's writer: one thread fills, and either sends. */
  @Test @Timeout(60) def aThreadThatFlushesSendsEachBufferWithItsOwnTimes(): Unit = {
    final class Filled(val firstMs: Long)
    val times = new BufferTimes
    val held = new AtomicReference[Filled]()
    var wrong, sent = 0
    def send(buffer: Filled): Unit = times.synchronized {
      sent += 1
      if (first(times.next()) != buffer.firstMs) wrong += 1
    }
    @volatile var done = false
    val flusher = new Thread(() => while (!done) times.synchronized {
      val taken = held.getAndSet(null)
      if (taken != null) send(taken)
    })
    flusher.start()
    val random = new SplittableRandom(3L)
    for (ms <- 1L to 200000L) {
      val taken = held.getAndSet(null)
      times.row(ms, fresh = taken == null)
      val buffer = if (taken == null) new Filled(ms) else taken
      if (random.nextInt(20) == 0) send(buffer) else held.set(buffer)
    }
    done = true
    flusher.join()
    times.synchronized { assertEquals(0, wrong); assertTrue(sent > 1000) }
  }
}
