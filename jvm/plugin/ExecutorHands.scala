package org.apache.spark.barograph.plugin

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.{Map => JMap}
import java.util.concurrent.{Executors, TimeUnit}

import com.sun.management.OperatingSystemMXBean

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.barograph.internals.SparkInternals
import org.apache.spark.barograph.orders.{Cuts, Orders}
import org.apache.spark.barograph.telemetry.{Lives, ProcessUse}
import org.apache.spark.internal.Logging

object ExecutorHands {
  /** Of this executor, once it has started. */
  @volatile private[barograph] var plugin: PluginContext = _
}

class ExecutorHands extends ExecutorPlugin with Logging {
  private val clock = Executors.newSingleThreadScheduledExecutor { task =>
    val thread = new Thread(task, "barograph-report")
    thread.setDaemon(true)
    thread
  }

  override def init(plugin: PluginContext, extra: JMap[String, String]): Unit = {
    val executor = plugin.executorID()
    ExecutorHands.plugin = plugin
    val mailbox = SparkInternals.mailbox(s"barograph-orders-$executor")(Cuts.take)
    plugin.ask(Hello(executor, mailbox)) match {
      case orders: Orders => Cuts.take(orders)
      case _ =>
    }
    // Reports are sent five times a second while an instance runs here, and once a second otherwise, as a heartbeat,
    // which also delivers orders that were lost.
    var silent = 0
    clock.scheduleWithFixedDelay(() => {
      try {
        val lives = Lives.report()
        silent += 1
        if (lives.nonEmpty || silent >= 5) {
          silent = 0
          plugin.ask(Report(executor, Cuts.version, lives, process())) match {
            case orders: Orders => Cuts.take(orders)
            case _ =>
          }
          Lives.heard()
        }
      } catch { case e: Exception => logWarning("a report did not reach the driver", e) }
    }, 200, 200, TimeUnit.MILLISECONDS)
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

  override def shutdown(): Unit = clock.shutdownNow()
}
