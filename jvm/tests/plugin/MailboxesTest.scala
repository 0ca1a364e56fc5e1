package org.apache.spark.barograph.plugin

import scala.concurrent.{Future, Promise}

import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Test

class MailboxesTest {
  @Test def executorsThatDoNotAnswerAreCountedAsDropped(): Unit = {
    val before = Dropped.total
    val questions = Map[String, () => Future[Array[Byte]]](
      "answers" -> (() => Future.successful(Array[Byte](7))),
      "is gone" -> (() => throw new IllegalStateException("gone")),
      "fails" -> (() => Future.failed(new IllegalStateException("failed"))),
      "is silent" -> (() => Promise[Array[Byte]]().future))
    val found = Mailboxes.answers(questions, 50L)
    assertEquals(Map("answers" -> Seq[Byte](7)), found.map { case (executor, answer) => executor -> answer.toSeq })
    assertEquals(before + 3, Dropped.total)
  }
}
