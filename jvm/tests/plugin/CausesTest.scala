package org.apache.spark.barograph.plugin

import java.io.{FileNotFoundException, IOException}
import java.sql.{BatchUpdateException, SQLException, SQLSyntaxErrorException}

import org.junit.jupiter.api.{Test, Timeout}
import org.junit.jupiter.api.Assertions._

@Timeout(60)
class CausesTest {
  private class Closed(words: String, state: String, number: Int) extends SQLException(words, state, number)
  private class Store(words: String) extends IOException(words)

  private def of(cause: Throwable): String = Causes.of(new RuntimeException("the query failed", cause))
  private def name(error: Throwable): String = error.getClass.getName

  @Test def anErrorWithoutCausesHasNone(): Unit = assertEquals("", Causes.of(new IOException("x")))

  @Test def aCauseHasTheFirstLineOfItsWords(): Unit = {
    assertEquals("\nCaused by: java.lang.ArithmeticException: one", of(new ArithmeticException("one\ntwo")))
    assertEquals("\nCaused by: java.lang.ArithmeticException: null", of(new ArithmeticException(null)))
  }

  @Test def aLibrarysClassComesWithThoseThatItExtends(): Unit = {
    val away = new Store("away")
    assertEquals(s"\nCaused by: ${name(away)}: away\n\tIt is a ${name(away)} java.io.IOException", of(away))
    assertEquals(
      "\nCaused by: java.io.FileNotFoundException: a\n\tIt is a java.io.FileNotFoundException java.io.IOException",
      of(new FileNotFoundException("a")))
  }

  @Test def aDatabasesErrorComesWithItsState(): Unit = {
    val closed = new Closed("starting up", "57P03", 7)
    assertEquals(
      s"\nCaused by: ${name(closed)}: starting up\n\tIt is a ${name(closed)} java.sql.SQLException; SQLSTATE 57P03, " +
        "number 7",
      of(closed))
    assertEquals(
      "\nCaused by: java.sql.SQLSyntaxErrorException: x\n\tIt is a java.sql.SQLSyntaxErrorException " +
        "java.sql.SQLNonTransientException java.sql.SQLException",
      of(new SQLSyntaxErrorException("x")))
  }

  @Test def soDoesOneOfJavasOwnClass(): Unit =
    assertEquals(
      "\nCaused by: java.sql.SQLException: x\n\tIt is a java.sql.SQLException; SQLSTATE 08006, number 0",
      of(new SQLException("x", "08006")))

  @Test def whatFailedInABatchIsACause(): Unit = {
    val batch = new BatchUpdateException("batch", Array.empty[Int])
    batch.setNextException(new Closed("closed", "08003", 0))
    assertTrue(of(batch).endsWith(" java.sql.SQLException; SQLSTATE 08003, number 0"), of(batch))
  }

  @Test def causesThatGoRoundHaveAnEnd(): Unit = {
    val (one, other) = (new IOException("one"), new IOException("other"))
    one.initCause(other)
    other.initCause(one)
    assertEquals(10, Causes.of(one).split("Caused by: ", -1).length - 1)
  }
}
