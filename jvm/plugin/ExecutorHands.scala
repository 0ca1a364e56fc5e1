package org.apache.spark.barograph.plugin

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.{Map => JMap}

import com.sun.management.OperatingSystemMXBean

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.barograph.internals.{Mailbox, SparkInternals}
import org.apache.spark.barograph.messages.{Malformed, Messages}
import org.apache.spark.barograph.shuffle.ShuffleKey
import org.apache.spark.barograph.telemetry.ProcessUse

object ExecutorHands {
  /** Of this executor, once it has started. */
  @volatile private[barograph] var plugin: PluginContext = _
}

class ExecutorHands extends ExecutorPlugin {
  private var reporter: Reporter = _
  private val reach = new Reach(() => SparkInternals.peers())

  override def init(plugin: PluginContext, extra: JMap[String, String]): Unit = {
    val executor = plugin.executorID()
    ExecutorHands.plugin = plugin
    plugin.ask(Messages.askKey) match {
      case key: Array[Byte] => ShuffleKey.take(Messages.keyIn(key))
      case _ => throw new Malformed("the driver gave no key: driver and executors need the same barograph-plugin.jar")
    }
    val mailbox = Mailbox.open(s"barograph-orders-$executor", ExecutorMail.take, ExecutorMail.answer)
    Reporter.follow(plugin.ask(Array[AnyRef](Messages.hello(executor), mailbox)))
    reporter = new Reporter(executor, plugin.ask(_), () => process(), unreachable = () => reach.unreachable)
    reporter.start()
    reach.start()
  }

  private val system = ManagementFactory.getOperatingSystemMXBean.asInstanceOf[OperatingSystemMXBean]
  private val pageBytes = 4096L

  /** What this whole process uses: instances, garbage collection, network threads. */
  private def process(): ProcessUse = {
    val resident =
      try Files.readString(Path.of("/proc/self/statm")).split(" ")(1).toLong * pageBytes
      catch { case _: Exception => Runtime.getRuntime.totalMemory() } // no such file: at least the heap
    ProcessUse(system.getProcessCpuTime, resident)
  }

  override def shutdown(): Unit = {
    reach.close()
    if (reporter != null) reporter.close()
  }
}
