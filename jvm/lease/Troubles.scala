package org.apache.spark.barograph.lease

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.internal.Logging

/**
 * Work that is tried again and again, and whose failure must not end its thread, also if it is an error of the JVM. The
 * first of several failures in a row is warned of, and the end of them is said too.
 */
private[lease] class Troubles extends Logging {
  private val present = ConcurrentHashMap.newKeySet[String]()

  def telling(what: String)(work: => Unit): Unit =
    try {
      work
      if (present.remove(what)) say(s"$what works again", None)
    } catch { case e: Throwable => if (present.add(what)) say(s"$what failed", Some(e)) }

  protected def say(text: String, because: Option[Throwable]): Unit = because match {
    case Some(e) => logWarning(text, e)
    case None => logWarning(text)
  }
}
