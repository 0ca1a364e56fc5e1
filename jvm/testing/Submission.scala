package org.apache.spark.deploy.barograph

import org.apache.spark.deploy.{Command, DriverDescription}
import org.apache.spark.deploy.DeployMessages._
import org.apache.spark.rpc.RpcEndpointRef

/** Asks a master to run a program, as spark-submit does. Its messages are private to Spark's package deploy. */
private[spark] object Submission {
  /** Returns why it was refused, or "". It asks for more cores than there are, so it never runs, and is taken back. */
  def tried(master: RpcEndpointRef): String = {
    val command = new Command("Planted", Nil, Map.empty, Nil, Nil, Nil)
    val program = new DriverDescription("file:/planted.jar", 1, 100000, false, command)
    val answer = master.askSync[SubmitDriverResponse](RequestSubmitDriver(program))
    answer.driverId.foreach(id => master.askSync[KillDriverResponse](RequestKillDriver(id)))
    if (answer.success) "" else answer.message
  }
}
