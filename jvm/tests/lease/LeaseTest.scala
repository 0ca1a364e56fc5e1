package org.apache.spark.barograph.lease

import java.nio.file.{Files, FileSystemException, NoSuchFileException, Path => JavaPath}
import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.util.{Try, Using}

import org.apache.hadoop.fs.{FileContext, Path}
import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

class LeaseTest {
  @TempDir var folder: JavaPath = _
  private val here = Owner.here("app-1", "first")
  /** Of another machine: only its renewals tell whether it lives. */
  private val there = here.copy(machine = "another", host = "far", application = "app-2", name = "second")
  private val remote = new RemoteLeaseFiles(FileContext.getLocalFSFileContext)

  private def eachKind(test: (LeaseFiles, Path) => Unit): Unit = Seq(LocalLeaseFiles, remote).foreach { files =>
    test(files, newRoot())
  }

  private def newRoot() = new Path(s"file:${Files.createTempDirectory(folder, "lease")}")

  private def write(files: LeaseFiles, lease: Lease, to: Path): Unit = {
    val temporary = lease.temporary()
    Using.resource(files.open(temporary))(_.write(1))
    files.move(temporary, to)
  }

  @Test def theFirstOwnerWritesAndTheSecondIsRefusedByName(): Unit = eachKind { (files, root) =>
    val first = Lease.acquire(root, there, files, 1000)
    assertEquals(1L, first.number)
    write(files, first, new Path(root, "0"))
    assertTrue(files.exists(new Path(root, "0")))
    val over = new CountDownLatch(1)
    val renewing = new Thread(() => while (!over.await(50, TimeUnit.MILLISECONDS)) first.renew())
    renewing.start()
    try {
      val refused = assertThrows(classOf[LeaseRefused], () => Lease.acquire(root, here, files, 1000))
      assertTrue(refused.getMessage.contains("the application second (app-2) on far, process"), refused.getMessage)
      assertThrows(classOf[LeaseRefused], () => Lease.acquire(root, here, files, 0))
      assertTrue(first.stands)
    } finally {
      over.countDown()
      renewing.join()
    }
  }

  @Test def anOwnerThatDoesNotRenewLosesItsLeaseBetweenAnyTwoOperations(): Unit = eachKind { (files, root) =>
    val slow = Lease.acquire(root, there, files, 300)
    val written = slow.temporary()
    files.open(written).close()
    val opened = files.open(slow.temporary())
    val next = Lease.acquire(root, here, files, 300)
    assertEquals(2L, next.number)
    assertFalse(slow.stands)
    assertTrue(Try(files.move(written, new Path(root, "1"))).isFailure)
    assertFalse(files.exists(new Path(root, "1")))
    opened.close() // it still has the file, which leads nowhere
    assertTrue(slow.lost.getMessage.contains("was taken over by the application first (app-1)"), slow.lost.getMessage)
    write(files, next, new Path(root, "1"))
    assertTrue(files.exists(new Path(root, "1")))
    assertEquals(Set("2", "2.owner"), files.list(new Path(root, "lease")).filterNot(_.startsWith(".")).toSet)
  }

  @Test def aLocalFenceIsNeverMadeAgain(): Unit = {
    val root = newRoot()
    val slow = Lease.acquire(root, there, LocalLeaseFiles, 300)
    Lease.acquire(root, here, LocalLeaseFiles, 300)
    assertThrows(classOf[NoSuchFileException], () => LocalLeaseFiles.open(slow.temporary()))
    assertFalse(slow.stands)
  }

  @Test def whatCannotBeSeenIsNotTakenForMissing(): Unit = {
    val root = newRoot()
    assertFalse(LocalLeaseFiles.exists(new Path(root, "1")))
    assertTrue(LocalLeaseFiles.exists(root))
    assertThrows(classOf[FileSystemException], () => LocalLeaseFiles.exists(new Path(root, "1" * 1000)))
  }

  @Test def aReleasedLeaseAndThatOfADeadProcessAreFreeAtOnce(): Unit = eachKind { (files, root) =>
    val first = Lease.acquire(root, there, files, 60000)
    first.release()
    val second = Lease.acquire(root, here.copy(pid = 1L << 22), files, 60000)
    assertEquals(2L, second.number)
    val third = Lease.acquire(root, here, files, 60000)
    assertEquals(3L, third.number)
    assertTrue(third.stands)
    assertFalse(second.stands)
  }

  @Test def anOwnerThatDiedInTheMiddleOfATakeOverIsSucceededAndAllBeforeItAreFencedOff(): Unit =
    eachKind { (files, root) =>
      val first = Lease.acquire(root, there, files, 300)
      // It made its number, wrote nothing into it, and had not yet moved the first one's fence away.
      files.createNew(new Path(root, "lease/2.owner"), "")
      assertTrue(first.stands)
      val third = Lease.acquire(root, here, files, 300)
      assertEquals(3L, third.number)
      assertFalse(first.stands)
    }

  @Test def anUnreadableOwnerIsUnknownAndNotGone(): Unit = {
    assertFalse(Owner.read("{").isGone)
    assertEquals("a driver that has not written its name", Owner.read("").describe)
    assertEquals(here, Owner.read(here.text))
    assertFalse(here.isGone)
    assertTrue(here.isThisProcess)
    assertTrue(here.copy(started = "0").isGone)
    assertFalse(there.copy(pid = 1L << 22).isGone)
  }
}
