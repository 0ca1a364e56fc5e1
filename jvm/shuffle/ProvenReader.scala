package org.apache.spark.barograph.shuffle

import java.util.concurrent.{ConcurrentHashMap, LinkedBlockingQueue}

import org.apache.spark.{SparkException, TaskContext}
import org.apache.spark.network.client.TransportClient
import org.apache.spark.network.shuffle.streaming.{DataMessage, StreamingShuffleMessage, TerminationControlMessage}
import org.apache.spark.shuffle.ShuffleHandle
import org.apache.spark.shuffle.streaming.{StreamingShuffleHandle, StreamingShuffleReader}

/** Spark's reader, which proves itself to each writer ([[Guard]]) and takes rows only from writers that do so too. */
// A parameter that is a field is set before the constructor of the superclass runs, which starts a thread that uses it.
class ProvenReader[K, C](
    handle: ShuffleHandle, task: TaskContext, override private[spark] val messageQueue: ProvenQueue, key: Array[Byte])
  extends StreamingShuffleReader[K, C](handle, task) {

  override protected def createClient(mapId: Int, remoteHost: String, remotePort: Int): TransportClient = {
    val client = super.createClient(mapId, remoteHost, remotePort)
    val shuffle = handle.asInstanceOf[StreamingShuffleHandle[_, _, _]].shuffleId
    Proof.introduce(client, key, Parties(shuffle, mapId, task.partitionId()), () => messageQueue.admit(mapId))
    client
  }
}

/**
 * Messages of writers. A writer of ours sends nothing before the reader has proven itself, so it is admitted by then.
 */
class ProvenQueue extends LinkedBlockingQueue[StreamingShuffleMessage] {
  private val admitted = ConcurrentHashMap.newKeySet[Int]()

  def admit(writer: Int): Unit = admitted.add(writer)

  override def put(message: StreamingShuffleMessage): Unit = {
    val writer = message match {
      case rows: DataMessage => rows.shuffleWriterId
      case end: TerminationControlMessage => end.shuffleWriterId
      case _ => -1
    }
    if (admitted.contains(writer)) accept(message)
    else {
      message.release()
      throw new SparkException(s"rows came from writer $writer, which has not proven that it is of this application")
    }
  }

  protected def accept(message: StreamingShuffleMessage): Unit = super.put(message)
}
