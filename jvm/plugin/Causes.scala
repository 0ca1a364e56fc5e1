package org.apache.spark.barograph.plugin

import java.sql.SQLException

/**
 * The causes of an error as text: Spark's message often has only the words of the cause, and its class tells an outage
 * from a bug. A library has classes of its own, so each comes with those that it extends, and with the SQLSTATE of a
 * database. A failed task's own exception is among the causes if the driver knows its class. Read by transient.py.
 */
private[plugin] object Causes {
  private val Most = 10
  // What every exception is.
  private val Plain =
    Set[Class[_]](classOf[Object], classOf[Throwable], classOf[Exception], classOf[RuntimeException], classOf[Error])

  def of(error: Throwable): String =
    Iterator.iterate(next(error))(next).takeWhile(_ != null).take(Most).map { cause =>
      s"\nCaused by: ${cause.getClass.getName}: ${firstLine(cause)}${types(cause)}"
    }.mkString

  /** A database's client may put what failed in a batch not among the causes, but behind its exception. */
  private def next(error: Throwable): Throwable = error match {
    case sql: SQLException if sql.getCause == null => sql.getNextException
    case _ => error.getCause
  }

  private def firstLine(error: Throwable): String =
    String.valueOf(error.getMessage).linesIterator.nextOption().mkString

  private def types(error: Throwable): String = {
    val all = Iterator.iterate[Class[_]](error.getClass)(_.getSuperclass).takeWhile(!Plain(_)).map(_.getName).toSeq
    val state = error match {
      case sql: SQLException if sql.getSQLState != null => s"; SQLSTATE ${sql.getSQLState}, number ${sql.getErrorCode}"
      case _ => ""
    }
    if (all.size < 2 && state.isEmpty) "" else s"\n\tIt is a ${all.mkString(" ")}$state"
  }
}
