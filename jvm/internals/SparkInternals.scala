/**
 * Calls into Spark's private parts that need reflection or one of Spark's own packages, and calls into its scheduler.
 * Other files use internal classes of Spark too, because they must extend them: tests/jvm/test_spark_internals.py lists
 * which file may import what, and why. A new Spark version can break any of them.
 */
package org.apache.spark.sql.barograph {

  import scala.jdk.CollectionConverters._

  import org.apache.hadoop.conf.Configuration

  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
  import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingQueryCheckpointMetadata}

  object SqlInternals {
    /** The running queries of the application, in all sessions. */
    def activeQueries(session: SparkSession): Seq[StreamExecution] =
      session.asInstanceOf[ClassicSession].sharedState.activeStreamingQueries.values().asScala.toSeq.collect {
        case query: StreamExecution => query
      }

    /** A session of its own with this one's settings and catalogue. */
    def copyOf(session: SparkSession): ClassicSession = session.asInstanceOf[ClassicSession].cloneSession()

    def hadoopConf(session: SparkSession): Configuration =
      session.asInstanceOf[ClassicSession].sessionState.newHadoopConf()

    /** The checkpoint's logs of epochs begun and committed. */
    def logsOf(session: SparkSession, checkpoint: String): StreamingQueryCheckpointMetadata =
      new StreamingQueryCheckpointMetadata(session.asInstanceOf[ClassicSession], checkpoint)
  }
}

package org.apache.spark.shuffle.streaming.barograph {

  import io.netty.buffer.Unpooled

  import org.apache.spark.barograph.shuffle.BufferTimes
  import org.apache.spark.barograph.telemetry.Meter
  import org.apache.spark.network.shuffle.streaming.DataMessage
  import org.apache.spark.shuffle.streaming.StreamingShuffleWriter

  object StreamingInternals {
    /** A receiver has taken all rows that were sent to it, up to this number. */
    def acknowledged(writer: StreamingShuffleWriter[_, _], receiver: Int, last: Long): Unit =
      writer.onTerminationAckReceived(receiver, last)

    /** Send half-filled buffers. */
    def flush(writer: StreamingShuffleWriter[_, _]): Unit = writer.shards.foreach(_.send())

    /** Send a half-filled buffer and, behind it, a message of no rows ([[Credit]]). */
    def ask(writer: StreamingShuffleWriter[_, _], writerId: Int, receiver: Int): Unit = {
      val shard = writer.shards(receiver)
      shard.send()
      shard.send(new DataMessage(writerId, receiver, 0, Unpooled.EMPTY_BUFFER, 0L))
    }

    /**
     * Each buffer that is sent carries the record times of its rows. The meter has the time of the row that is written
     * now. To be called before the first row. The writer's own thread fills a buffer that it has
     * taken, and it or a thread that flushes half-filled buffers sends it, under the lock of the receiver's buffers.
     */
    def sendTimes[K, V](writer: StreamingShuffleWriter[K, V], meter: Meter): Unit = {
      class TimedShard(receiver: Int) extends writer.ShardState(receiver) {
        private val times = new BufferTimes

        // Called by the writer's thread for each row, and at the end.
        override def takeBuffer(): writer.TimestampedBuffer = {
          val taken = buffer.getAndSet(null)
          times.row(meter.recordMs, fresh = taken == null)
          taken
        }

        override def send(): Unit = synchronized {
          val taken = buffer.getAndSet(null)
          if (taken != null) send(taken)
        }

        override def send(filled: writer.TimestampedBuffer): Unit = synchronized {
          filled.serializationStream.flush()
          times.next().write(filled.buffer)
          super.send(filled)
        }
      }
      for (receiver <- writer.shards.indices) writer.shards(receiver) = new TimedShard(receiver)
    }

    /** How long a half-filled buffer may wait. Spark's writer reads it again after each wait. */
    def flushEvery(writer: StreamingShuffleWriter[_, _], ms: Long): Unit = waitField.setLong(writer, ms)

    private lazy val waitField = {
      val field = classOf[StreamingShuffleWriter[_, _]].getDeclaredField("MAX_BUFFERING_TIME_MS")
      field.setAccessible(true)
      field
    }
  }
}

package org.apache.spark.barograph.internals {

  import java.util.concurrent.Semaphore

  import org.apache.hadoop.fs.Path

  import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
  import org.apache.spark.barograph.plugin.Peer
  import org.apache.spark.internal.config.CPUS_PER_TASK
  import org.apache.spark.resource.ResourceProfile
  import org.apache.spark.scheduler.{ExecutorProcessLost, TaskSchedulerImpl}
  import org.apache.spark.scheduler.cluster.CoarseGrainedClusterMessages.RemoveExecutor
  import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend
  import org.apache.spark.shuffle.ShuffleWriter
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.barograph.SqlInternals
  import org.apache.spark.sql.execution.streaming.runtime.{AsyncProgressTrackingMicroBatchExecution, StreamExecution}

  private[barograph] object SparkInternals {

    /** Local properties that the stream thread sets before it plans an epoch. */
    val QueryIdProperty = "sql.streaming.queryId"
    val EpochProperty = "streaming.sql.batchId"
    val RunIdProperty = "spark.jobGroup.id"

    def context(session: SparkSession): SparkContext = session.sparkContext

    def activeQueries(session: SparkSession): Seq[StreamExecution] = SqlInternals.activeQueries(session)

    /** Where the queries that run now keep their checkpoints; None if there is no session that knows them. */
    def activeCheckpoints: Option[Set[Path]] =
      SparkSession.getDefaultSession.map(activeQueries(_).map(q => new Path(q.resolvedCheckpointRoot)).toSet)

    /** Of block transfer, in this process. Py4J cannot look into SparkEnv, which names classes that are absent. */
    def blockPort: Int = SparkEnv.get.blockManager.blockManagerId.port

    /** In an executor: the others, except those on its own host, and where they take connections. */
    def peers(): Seq[Peer] = {
      val blocks = SparkEnv.get.blockManager
      val own = blocks.blockManagerId
      blocks.master.getPeers(own).filter(_.host != own.host).map(p => Peer(p.executorId, p.host, p.port))
    }

    /**
     * Waits until an epoch that this run has ended is in the commit log: Spark writes the logs of some stateless
     * queries while it plans the next epoch. If that fails, Spark interrupts this wait, and the query ends with the
     * cause.
     */
    def awaitCommit(query: StreamExecution, epoch: Long): Unit = query match {
      case async: AsyncProgressTrackingMicroBatchExecution =>
        while (!async.commitLog.writtenToDurableStorage.contains(epoch)) Thread.sleep(2L)
      case _ =>
    }

    /** Executors that can get tasks now; in local mode the driver itself. */
    def liveExecutors(context: SparkContext): Set[String] =
      context.schedulerBackend match {
        // An executor that is being ended, or whose connection is lost, is still listed for some seconds and gets no
        // tasks.
        case backend: CoarseGrainedSchedulerBackend => backend.getExecutorIds().filter(backend.isExecutorActive).toSet
        case _ if context.isLocal => Set(SparkContext.DRIVER_IDENTIFIER)
        case _ => context.getExecutorIds().toSet
      }

    /**
     * Executors that will end as soon as they run no task, because they or their workers were decommissioned. Spark
     * tells no listener, so this is asked again and again.
     */
    def decommissioned(context: SparkContext): Seq[String] = (context.schedulerBackend, context.taskScheduler) match {
      case (backend: CoarseGrainedSchedulerBackend, tasks: TaskSchedulerImpl) =>
        backend.getExecutorIds().filter(tasks.getExecutorDecommissionState(_).isDefined)
      case _ => Nil
    }

    /** How many tasks so many cores of an executor run at once, by spark.task.cpus, which may be a fraction. */
    def tasksAtOnce(conf: SparkConf, cores: Int): Int =
      ResourceProfile.numTasksBasedOnCores(BigDecimal(cores), conf.get(CPUS_PER_TASK))

    /**
     * End executors that run no task; false, and none ends, if one of them is busy. The cluster manager's target is
     * lowered first, or it would start others in their place at once: to `left`, or if that is below 0 to the others
     * that live now.
     */
    def release(context: SparkContext, ids: Seq[String], left: Int): Boolean =
      (context.schedulerBackend, context.taskScheduler) match {
        case (backend: CoarseGrainedSchedulerBackend, tasks: TaskSchedulerImpl) if !ids.exists(tasks.isExecutorBusy) =>
          want(context, if (left < 0) (liveExecutors(context) -- ids).size else left)
          val ended = backend.killExecutors(
            ids, adjustTargetNumExecutors = false, countFailures = false, force = false)
          ended.size == ids.size
        case _ => false
      }

    /**
     * End an executor that does not answer, and get another. A worker waits ten seconds for a process that it ends, and
     * cannot be reached from behind a cut network; so the driver counts the executor as lost at once, as Spark does
     * when its heartbeats stay away for two minutes.
     */
    def endSilent(context: SparkContext, id: String, why: String): Boolean = context.schedulerBackend match {
      case backend: CoarseGrainedSchedulerBackend if backend.getExecutorIds().contains(id) =>
        context.killAndReplaceExecutor(id)
        backend.driverEndpoint.send(RemoveExecutor(id, ExecutorProcessLost(why)))
        true
      case _ => false
    }

    /** Want so many executors in all. On a standalone cluster an application begins with Int.MaxValue. */
    def want(context: SparkContext, count: Int): Unit = context.requestTotalExecutors(count, 0, Map.empty)

    /**
     * A streaming shuffle writer waits for room downstream on one semaphore, which is private. It is replaced by one
     * that measures the wait, before the first row. Without this the clock would have to be read for every row.
     */
    def replaceRoom(writer: ShuffleWriter[_, _], another: Semaphore => Semaphore): Unit = {
      val field = writer.getClass.getDeclaredFields.find(_.getType == classOf[Semaphore]).getOrElse(
        throw new IllegalStateException(
          s"${writer.getClass.getName} has no semaphore: this plug-in needs Spark 4.3"))
      field.setAccessible(true)
      field.set(writer, another(field.get(writer).asInstanceOf[Semaphore]))
    }
  }
}
