package org.apache.spark.barograph

import java.lang.management.ManagementFactory
import java.nio.file.{Files, Path}
import java.util.{Map => JMap}
import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}

import scala.jdk.CollectionConverters._

import com.sun.management.OperatingSystemMXBean

import org.apache.spark.SparkContext
import org.apache.spark.api.plugin._
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef
import org.apache.spark.scheduler._

/** Enabled by spark.plugins: runs in the driver and in every executor. It reports and follows orders. */
class BarographPlugin extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = new DriverHands
  override def executorPlugin(): ExecutorPlugin = new ExecutorHands
}

/** An executor announces itself and where orders can be sent. The answer is the present state of the orders. */
final case class Hello(executor: String, mailbox: RpcEndpointRef)

/**
 * What an executor saw since its last report, and the latest orders it has. The answer is [[Orders]] if it is behind.
 */
final case class Report(executor: String, heard: Long, lives: Seq[LifeReport], process: ProcessUse)

class DriverHands extends DriverPlugin with Logging {
  override def init(context: SparkContext, plugin: PluginContext): JMap[String, String] = {
    Ledger.reset()
    ReportBuffer.reset()
    Gauges.reset()
    Mailboxes.reset()
    context.addSparkListener(new SparkListener {
      override def onExecutorAdded(e: SparkListenerExecutorAdded): Unit =
        Ledger.executorAdded(
          ExecutorSeats(e.executorId, e.executorInfo.executorHost, e.executorInfo.totalCores, e.time))
      override def onExecutorRemoved(e: SparkListenerExecutorRemoved): Unit = {
        Ledger.executorRemoved(e.executorId)
        Mailboxes.forget(e.executorId)
        Gauges.executorRemoved(e.executorId)
      }
    })
    java.util.Map.of()
  }

  override def receive(message: Object): Object = message match {
    case Hello(executor, mailbox) =>
      Mailboxes.remember(executor, mailbox)
      Ledger.current
    case Report(executor, heard, lives, process) =>
      ReportBuffer.take(lives)
      Gauges.take(executor, lives, process)
      val now = Ledger.current
      if (heard < now.version) now else null
    case _ => null
  }
}

/** The executors to which orders are pushed. */
object Mailboxes extends Logging {
  private val boxes = new ConcurrentHashMap[String, RpcEndpointRef]()
  def reset(): Unit = boxes.clear()
  def remember(executor: String, box: RpcEndpointRef): Unit = boxes.put(executor, box)
  def forget(executor: String): Unit = boxes.remove(executor)
  def all: Map[String, RpcEndpointRef] = boxes.asScala.toMap

  /** One message to each executor; none waits for another. A lost message is made up for by the next report. */
  def push(orders: Orders): Unit = boxes.asScala.foreach { case (executor, box) =>
    try box.send(orders) catch { case e: Exception => logWarning(s"orders did not reach executor $executor", e) }
  }
}

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
