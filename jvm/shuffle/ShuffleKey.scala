package org.apache.spark.barograph.shuffle

import java.security.SecureRandom

/**
 * The key by which the instances of one application know each other. The driver makes a new one for each application
 * and sends it to its executors over Spark's RPC, so it is as secret as that is: see spark.authenticate. It is in no
 * setting, file or log.
 */
object ShuffleKey {
  private val Bytes = 32
  @volatile private var present: Array[Byte] = _

  /** In the driver, when an application begins. */
  def renew(): Unit = {
    val key = new Array[Byte](Bytes)
    new SecureRandom().nextBytes(key)
    present = key
  }

  /** In an executor, when it begins. */
  def take(key: Array[Byte]): Unit = present = key.clone()

  def get: Array[Byte] = {
    val key = present
    if (key == null) {
      throw new IllegalStateException(
        "this shuffle manager needs the plug-in: add org.apache.spark.barograph.BarographPlugin to spark.plugins")
    }
    key
  }
}
