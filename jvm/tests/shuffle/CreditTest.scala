package org.apache.spark.barograph.shuffle

import java.nio.ByteBuffer
import java.util.concurrent.atomic.AtomicInteger

import io.netty.buffer.Unpooled

import org.apache.spark.TaskContext
import org.apache.spark.barograph.telemetry.Meter
import org.apache.spark.network.shuffle.streaming.CreditControlMessage
import org.apache.spark.util.ErrorNotifier
import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

/** The sender's side: messages come in, and there is no writer. */
@Timeout(30)
class CreditTest {
  private val errors = new ErrorNotifier()
  private val meter = new Meter
  private val key = Array.fill[Byte](32)(7)
  private val credit = new Credit((_, _) => (), 0, 0, 2, TaskContext.empty(), errors, key, meter, 50L)
  private val readers = Seq(0, 1).map(Connection.proven(credit, _, key))

  private def message(receiver: Int, number: Int): ByteBuffer = {
    val grant = new CreditControlMessage(0, receiver, number)
    val buffer = Unpooled.compositeBuffer().capacity(grant.headerLength())
    grant.encode(buffer)
    buffer.nioBuffer(0, grant.headerLength())
  }

  /** As the reader that it names. */
  private def receive(message: ByteBuffer): Unit = readers(message.getInt(16)).send(message)

  @Test def grantsOfEachReceiverAddUp(): Unit = {
    receive(message(1, -16))
    receive(message(1, -4))
    assertEquals(Seq(0L, 20L), Seq(credit.grantedTo(0), credit.grantedTo(1)))
    assertTrue(errors.getError().isEmpty)
  }

  @Test def aSenderWithCreditDoesNotWait(): Unit = {
    receive(message(1, -16))
    credit.await(1, 0L)
    credit.await(1, 15L)
    assertEquals(0L, meter.blockedNsBy(System.nanoTime()))
  }

  @Test def aReceiverThatIsReadyHasGrantedNothing(): Unit = {
    receive(message(1, Credit.Ready))
    assertEquals(0L, credit.grantedTo(1))
    assertTrue(errors.getError().isEmpty)
  }

  /** However late it is: every receiver that has proven itself is an instance, and instances grant credit. */
  @Test def aProvenReceiverThatIsNotReadyGetsNoRow(): Unit = {
    val credit = new Unwritten()
    val reader = Connection.proven(credit, 1, key)
    val sender = new Thread(() => credit.await(1, 0L))
    sender.start()
    sender.join(2500)
    assertEquals(0L, credit.grantedTo(1))
    assertTrue(sender.isAlive)
    reader.send(message(1, Credit.Ready))
    while (credit.asked.isEmpty) Thread.onSpinWait()
    reader.send(message(1, -3))
    sender.join()
    assertEquals(3L, credit.grantedTo(1))
  }

  /** Of a writer that has nothing in its buffers. */
  private class Unwritten(notifier: ErrorNotifier = errors)
    extends Credit((_, _) => (), 0, 0, 2, TaskContext.empty(), notifier, key, meter, 50L) {
    @volatile var asked = Seq.empty[Int]
    override private[barograph] def ask(receiver: Int): Unit = asked :+= receiver
    override private[barograph] def flush(): Unit = ()
  }

  /** Looking costs CPU, and a grant wakes it. */
  @Test def aSenderThatWaitsForLongLooksRarely(): Unit = {
    val looks = new AtomicInteger
    val counted = new ErrorNotifier {
      override def throwErrorIfExists(): Unit = {
        looks.incrementAndGet()
        super.throwErrorIfExists()
      }
    }
    val credit = new Unwritten(counted)
    val reader = Connection.proven(credit, 1, key)
    val sender = new Thread(() => credit.await(1, 0L))
    sender.start()
    sender.join(500)
    assertTrue(looks.get <= 80, s"$looks looks in half a second")
    reader.send(message(1, -3))
    sender.join()
    assertEquals(3L, credit.grantedTo(1))
  }

  @Test def aSenderEndsWhenEveryReceiverHasEnough(): Unit = {
    receive(message(0, Credit.Enough))
    receive(message(1, Credit.Enough))
    credit.awaitEnough()
    assertEquals(Seq(0L, 0L), Seq(credit.grantedTo(0), credit.grantedTo(1)))
  }

  @Test def aMessageOfSparksOwnGoesToSparksHandler(): Unit = {
    receive(message(1, 10))
    assertEquals(0L, credit.grantedTo(1))
    assertTrue(errors.getError().isEmpty)
  }

  @Test def aBrokenMessageFailsTheTaskInsteadOfLettingItWait(): Unit =
    Seq(
      "empty" -> ByteBuffer.allocate(0),
      "of no known type" -> ByteBuffer.wrap(Array.fill(16)(99.toByte)),
      "cut off" -> message(1, -16).limit(5),
      "to no receiver" -> message(2, -16),
      "to a negative receiver" -> message(-1, -16),
      "to another receiver" -> message(0, -16)
    ).foreach { case (what, broken) =>
      val errors = new ErrorNotifier()
      val credit = new Credit((_, _) => (), 0, 0, 2, TaskContext.empty(), errors, key, meter, 50L)
      val reader = Connection.proven(credit, 1, key)
      reader.send(broken)
      assertTrue(errors.getError().isDefined, what)
      assertThrows(classOf[Throwable], () => credit.await(1, 0L), what)
      reader.send(message(1, -16))
      assertEquals(16L, credit.grantedTo(1), what)
    }
}
