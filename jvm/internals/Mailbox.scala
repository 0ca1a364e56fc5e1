package org.apache.spark.barograph.internals

import scala.concurrent.Future
import scala.concurrent.duration._

import org.apache.spark.SparkEnv
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, RpcTimeout, ThreadSafeRpcEndpoint}

/** Where the driver sends bytes to one executor, over the connection that the executor opened. */
final class Mailbox private (endpoint: RpcEndpointRef) {
  def send(message: Array[Byte]): Unit = endpoint.send(message)

  def ask(question: Array[Byte], timeoutMs: Long): Future[Array[Byte]] =
    endpoint.ask[Array[Byte]](question, new RpcTimeout(timeoutMs.millis, "spark.barograph.answers"))
}

object Mailbox {
  /**
   * In an executor: an endpoint for bytes, and for questions and answers in bytes. Returns the reference to send to the
   * driver. It is an object of Spark's own, which every class loader of a driver or executor knows.
   */
  def open(name: String, take: Array[Byte] => Unit, answer: Array[Byte] => Array[Byte]): AnyRef = {
    val env: RpcEnv = SparkEnv.get.rpcEnv
    env.setupEndpoint(name, new ThreadSafeRpcEndpoint {
      override val rpcEnv: RpcEnv = env
      override def receive: PartialFunction[Any, Unit] = { case message: Array[Byte] => take(message) }
      override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
        case question: Array[Byte] => context.reply(answer(question))
      }
    })
  }

  /** In the driver: the mailbox of a reference that an executor sent; None if it is not one. */
  def of(reference: AnyRef): Option[Mailbox] = reference match {
    case endpoint: RpcEndpointRef => Some(new Mailbox(endpoint))
    case _ => None
  }
}
