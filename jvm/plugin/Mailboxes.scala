package org.apache.spark.barograph.plugin

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.barograph.orders.Orders
import org.apache.spark.internal.Logging
import org.apache.spark.rpc.RpcEndpointRef

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
