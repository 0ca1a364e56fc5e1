package org.apache.spark.barograph.testing

import scala.util.Try

import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.rpc.{RpcAddress, RpcEnv}

/** A program that is no part of the cluster and connects to one of its ports. Called by tests in the driver's JVM. */
object Stranger {
  /** Look up an endpoint of Spark's RPC; secret: empty for a program without one. Returns why it was refused, or "". */
  def knock(host: String, port: Int, endpoint: String, secret: String): String = {
    val conf = new SparkConf(false).set("spark.network.timeout", "20s").set("spark.rpc.lookupTimeout", "20s")
    if (secret.nonEmpty) {
      conf.set("spark.authenticate", "true").set("spark.authenticate.secret", secret)
        .set("spark.network.crypto.enabled", "true").set("spark.network.crypto.authEngineVersion", "2")
        .set("spark.network.crypto.cipher", "AES/GCM/NoPadding").set("spark.network.crypto.saslFallback", "false")
    }
    val env = RpcEnv.create("stranger", "127.0.0.1", 0, conf, new SecurityManager(conf), clientMode = true)
    // The error says little by itself; its causes say whether it was refused or there is no such endpoint.
    def whole(error: Throwable) = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).mkString(": ")
    try Try(env.setupEndpointRef(RpcAddress(host, port), endpoint)).fold(whole, _ => "")
    finally { env.shutdown(); env.awaitTermination() }
  }
}
