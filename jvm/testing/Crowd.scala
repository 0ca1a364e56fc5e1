package org.apache.spark.barograph.testing

import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}

import org.apache.spark.SparkEnv
import org.apache.spark.barograph.internals.Mailbox
import org.apache.spark.barograph.messages.{Messages, Report}
import org.apache.spark.barograph.plugin.{ExecutorHands, ExecutorMail}
import org.apache.spark.barograph.telemetry.ProcessUse

/**
 * For benches: one executor simulates many, each with an endpoint and a report a second like a real one, so that the
 * cost of a hundred executors can be measured on a small machine. Called with Spark SQL's reflect().
 */
object Crowd {
  private val heard = new ConcurrentHashMap[String, Long]()
  private lazy val clock = Executors.newScheduledThreadPool(2, (task: Runnable) => {
    val thread = new Thread(task, "barograph-crowd")
    thread.setDaemon(true)
    thread
  })

  /** Simulate `count` more executors, if this is the executor named. Returns this executor. */
  def join(executor: String, count: Int): String = synchronized {
    val here = SparkEnv.get.executorId
    if (here == executor && heard.isEmpty) {
      val plugin = ExecutorHands.plugin
      for (i <- 0 until count) {
        val name = s"crowd-$i"
        heard.put(name, 0L)
        val box = Mailbox.open(
          s"barograph-orders-$name", _ => heard.put(name, System.currentTimeMillis()), ExecutorMail.answer(_))
        plugin.ask(Array[AnyRef](Messages.hello(name), box))
        clock.scheduleWithFixedDelay(
          () => plugin.ask(Messages.report(Report(name, Long.MaxValue, Nil, ProcessUse(0L, 0L)))),
          1000L + i * 10L, 1000L, TimeUnit.MILLISECONDS)
      }
    }
    here
  }

  /** When the last of them received the last order, in milliseconds since 1970; empty on other executors. */
  def lastHeard(executor: String): String =
    if (SparkEnv.get.executorId != executor || heard.isEmpty) ""
    else heard.values().stream().mapToLong(_.longValue).max().getAsLong.toString
}
