package org.apache.spark.barograph.enforce

import java.nio.file.{Files, Path}
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger

import scala.util.Try

import org.apache.spark.barograph.orders.{InstanceKey, Share}
import org.junit.jupiter.api.{AfterEach, BeforeEach, Test, Timeout}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Assumptions.assumeTrue

/** On the groups of the kernel, where this process may write them: threads of this process that use all they get. */
@Timeout(120)
class GroupsTest {
  private val (a, b) = (InstanceKey("wc", "split", 0), InstanceKey("wc", "count", 1))
  private val pid = ProcessHandle.current().pid()
  private val groups = new Groups(() => OwnGroup.find(), pid)
  private lazy val own = OwnGroup.find()
  @volatile private var burning = true
  private var threads = Seq.empty[Thread]

  @BeforeEach def mayWrite(): Unit = assumeTrue(
    Try(groups.hold(Map(a -> (burner(), Share(50000L, 0L))))).isSuccess, "control groups cannot be written here")

  @AfterEach def end(): Unit = {
    groups.release()
    burning = false
    threads.foreach(_.join())
    assertFalse(Files.exists(own.path.resolve(s"barograph-$pid")))
  }

  /** A thread that uses all it gets; returns its number in the system. */
  private def burner(): Int = {
    val tid = new AtomicInteger
    val known = new CountDownLatch(1)
    val thread = new Thread(() => {
      tid.set(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName.toString.toInt)
      known.countDown()
      while (burning) Thread.onSpinWait()
    })
    thread.start()
    threads :+= thread
    known.await()
    tid.get
  }

  private def group(instance: InstanceKey): Path =
    ExecutorGroup(own, pid, saves = false).of(instance)
  private def threadsIn(folder: Path): Set[Int] =
    Files.readString(folder.resolve(own.threads)).linesIterator.map(_.trim.toInt).toSet
  private def share(pct: Double): Share = Share((pct * 1000).toLong, 0L)

  @Test def aThreadIsStoppedAtItsLimitAndAChangeTakesEffectAtOnce(): Unit = {
    val tid = burner()
    for (pct <- Seq(5.0, 20.0)) {
      groups.hold(Map(a -> (tid, share(pct))))
      assertEquals(pct / 100.0, own.quotaOf(group(a)).get.cores, 1e-9)
      assertEquals(Set(tid), threadsIn(group(a)))
      val before = groups.throttledNs(a)
      val deadline = System.nanoTime() + 60000000000L
      while (groups.throttledNs(a) == before) {
        assertTrue(System.nanoTime() < deadline, "it was never stopped")
        Thread.sleep(5L)
      }
    }
  }

  @Test def threadsMoveBetweenInstancesAndStraysGoHome(): Unit = {
    val (one, two) = (burner(), burner())
    groups.hold(Map(a -> (one, share(10.0)), b -> (two, share(10.0))))
    groups.hold(Map(a -> (two, share(10.0))))
    assertEquals(Set(two), threadsIn(group(a)))
    assertFalse(Files.exists(group(b)))
    assertTrue(threadsIn(own.path)(one))
    Files.writeString(group(a).resolve(own.threads), one.toString) // as a thread that the instance's thread started
    groups.hold(Map(a -> (two, share(10.0))))
    assertEquals(Set(two), threadsIn(group(a)))
  }

  @Test def aThreadThatIsGoneIsNoError(): Unit = {
    groups.hold(Map(a -> (4194303, share(10.0)), b -> (burner(), share(10.0))))
    assertEquals(Set.empty[Int], threadsIn(group(a)))
    assertEquals(1, threadsIn(group(b)).size)
  }

  @Test def groupsThatAnotherProcessRemovedAreMadeAgain(): Unit = {
    val tid = burner()
    groups.hold(Map(a -> (tid, share(10.0))))
    Files.writeString(own.path.resolve(own.threads), tid.toString)
    Files.delete(group(a))
    Try(groups.hold(Map(a -> (tid, share(20.0))))) // fails, or makes it again with what differs only
    groups.release()
    groups.hold(Map(a -> (tid, share(20.0))))
    assertEquals(0.2, own.quotaOf(group(a)).get.cores, 1e-9)
    assertEquals(Set(tid), threadsIn(group(a)))
  }
}
