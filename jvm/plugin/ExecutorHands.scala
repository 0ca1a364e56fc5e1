package org.apache.spark.barograph.plugin

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.{Map => JMap}

import com.sun.management.OperatingSystemMXBean

import org.apache.spark.api.plugin.{ExecutorPlugin, PluginContext}
import org.apache.spark.barograph.enforce.{Capacity, Enforcer, Groups, OwnGroup}
import org.apache.spark.barograph.internals.{Mailbox, SparkInternals}
import org.apache.spark.barograph.kafka.EndOffsets
import org.apache.spark.barograph.messages.{Malformed, Messages}
import org.apache.spark.barograph.orders.Shares
import org.apache.spark.barograph.shuffle.ShuffleKey
import org.apache.spark.barograph.telemetry.ProcessUse

object ExecutorHands {
  /** Of this executor, once it has started. */
  @volatile private[barograph] var plugin: PluginContext = _
  @volatile private var reporter: Reporter = _

  /** The report that the driver asks for. */
  private[barograph] def report(heard: Boolean): Array[Byte] =
    if (reporter == null) ExecutorMail.NoAnswer else reporter.answer(heard)
}

class ExecutorHands extends ExecutorPlugin {
  private var reporter: Reporter = _
  private val reach = new Reach(() => SparkInternals.peers())
  @volatile private var executor = ""
  private val enforcer = new Enforcer(
    new Groups(() => OwnGroup.find(), ProcessHandle.current().pid()),
    quotaMilliCores = () => Capacity.now().part(Shares.sharers(executor)))

  override def init(plugin: PluginContext, extra: JMap[String, String]): Unit = {
    executor = plugin.executorID()
    ExecutorHands.plugin = plugin
    plugin.ask(Messages.askKey) match {
      case key: Array[Byte] => ShuffleKey.take(Messages.keyIn(key))
      case _ => throw new Malformed("the driver gave no key: driver and executors need the same barograph-plugin.jar")
    }
    reporter = new Reporter(
      executor, plugin.ask(_), () => process(), unreachable = () => reach.unreachable, capacity = () => Capacity.now(),
      enforced = () => enforcer.enforced, topics = () => EndOffsets.sizes)
    ExecutorHands.reporter = reporter
    val mailbox = Mailbox.open(s"barograph-orders-$executor", ExecutorMail.take, ExecutorMail.answer(_))
    Reporter.follow(plugin.ask(Array[AnyRef](Messages.hello(executor), mailbox)))
    enforcer.start()
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
    enforcer.close()
    if (reporter != null) reporter.close()
  }
}
