package org.apache.spark.barograph.testing

import java.util.concurrent.{Callable, Executors}

import scala.util.Try

import org.apache.spark.{SecurityManager, SparkConf}
import org.apache.spark.deploy.barograph.Submission
import org.apache.spark.rpc.{RpcAddress, RpcEndpointRef, RpcEnv}

/**
 * A program that is no part of the cluster and speaks Spark's RPC to ports of it; it may run as any user. Each line of
 * its input is "look HOST PORT ENDPOINT [SECRET]", which asks for an endpoint, or "submit HOST PORT [SECRET]", which
 * asks a master to run a program. It prints its user, and then for each line why it was refused; nothing if it was not.
 */
object Stranger {
  private val AtOnce = 32 // a port that speaks another protocol takes the whole time

  def main(args: Array[String]): Unit = {
    println(System.getProperty("user.name"))
    val pool = Executors.newFixedThreadPool(AtOnce)
    val answers = scala.io.Source.stdin.getLines().toList.map { line =>
      val words = line.split(" ")
      pool.submit((() => tried(words)): Callable[String])
    }
    answers.foreach(answer => println(answer.get().replace('\n', ' ')))
    pool.shutdown()
  }

  private def tried(words: Array[String]): String = words match {
    case Array("look", host, port, endpoint, secret @ _*) => reached(host, port, endpoint, secret.headOption)(_ => "")
    case Array("submit", host, port, secret @ _*) => reached(host, port, "Master", secret.headOption)(Submission.tried)
    case _ => throw new IllegalArgumentException(words.mkString(" "))
  }

  private def reached(host: String, port: String, endpoint: String, secret: Option[String])(
      use: RpcEndpointRef => String): String = {
    val conf = new SparkConf(false).set("spark.network.timeout", "20s").set("spark.rpc.lookupTimeout", "20s")
    secret.foreach { given =>
      conf.set("spark.authenticate", "true").set("spark.authenticate.secret", given)
        .set("spark.network.crypto.enabled", "true").set("spark.network.crypto.authEngineVersion", "2")
        .set("spark.network.crypto.cipher", "AES/GCM/NoPadding").set("spark.network.crypto.saslFallback", "false")
    }
    val env = RpcEnv.create("stranger", "127.0.0.1", 0, conf, new SecurityManager(conf), clientMode = true)
    // The error says little by itself; its causes say whether it was refused or there is no such endpoint.
    def whole(error: Throwable) = Iterator.iterate(error)(_.getCause).takeWhile(_ != null).mkString(": ")
    try Try(use(env.setupEndpointRef(RpcAddress(host, port.toInt), endpoint))).fold(whole, identity)
    finally { env.shutdown(); env.awaitTermination() }
  }
}
