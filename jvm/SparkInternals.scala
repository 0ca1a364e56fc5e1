/** Every call into private parts of Spark is in this file, so that the next Spark version breaks one file. */
package org.apache.spark.sql.barograph {

  import scala.jdk.CollectionConverters._

  import org.apache.hadoop.conf.Configuration

  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
  import org.apache.spark.sql.execution.streaming.runtime.{StreamExecution, StreamingQueryCheckpointMetadata}

  object SqlInternals {
    /** The running queries of the application, whichever session started them. */
    def activeQueries(session: SparkSession): Seq[StreamExecution] =
      session.asInstanceOf[ClassicSession].sharedState.activeStreamingQueries.values().asScala.toSeq.collect {
        case query: StreamExecution => query
      }

    /** A session of its own with this one's settings and this one's catalogue. */
    def copyOf(session: SparkSession): ClassicSession = session.asInstanceOf[ClassicSession].cloneSession()

    def hadoopConf(session: SparkSession): Configuration =
      session.asInstanceOf[ClassicSession].sessionState.newHadoopConf()

    /** What a checkpoint says of epochs begun and committed. */
    def logsOf(session: SparkSession, checkpoint: String): StreamingQueryCheckpointMetadata =
      new StreamingQueryCheckpointMetadata(session.asInstanceOf[ClassicSession], checkpoint)
  }
}

package org.apache.spark.shuffle.streaming.barograph {

  import org.apache.spark.shuffle.streaming.StreamingShuffleWriter

  object StreamingInternals {
    /** A receiver has taken all that was sent to it, up to this number. */
    def acknowledged(writer: StreamingShuffleWriter[_, _], receiver: Int, last: Long): Unit =
      writer.onTerminationAckReceived(receiver, last)

    /** Send what waits in half-filled buffers. */
    def flush(writer: StreamingShuffleWriter[_, _]): Unit = writer.shards.foreach(_.send())

    /** How long a half-filled buffer may wait. Spark's writer looks at it anew each time it has waited. */
    def flushEvery(writer: StreamingShuffleWriter[_, _], ms: Long): Unit = waitField.setLong(writer, ms)

    private lazy val waitField = {
      val field = classOf[StreamingShuffleWriter[_, _]].getDeclaredField("MAX_BUFFERING_TIME_MS")
      field.setAccessible(true)
      field
    }
  }
}

package org.apache.spark.barograph {

  import java.util.concurrent.Semaphore

  import org.apache.spark.{SparkContext, SparkEnv}
  import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, ThreadSafeRpcEndpoint}
  import org.apache.spark.scheduler.TaskSchedulerImpl
  import org.apache.spark.scheduler.cluster.CoarseGrainedSchedulerBackend
  import org.apache.spark.shuffle.ShuffleWriter
  import org.apache.spark.sql.SparkSession
  import org.apache.spark.sql.barograph.SqlInternals
  import org.apache.spark.sql.execution.streaming.runtime.StreamExecution

  private[barograph] object SparkInternals {

    /** Local properties that the stream thread sets before it plans an epoch. */
    val QueryIdProperty = "sql.streaming.queryId"
    val EpochProperty = "streaming.sql.batchId"
    val RunIdProperty = "spark.jobGroup.id"

    def context(session: SparkSession): SparkContext = session.sparkContext

    def activeQueries(session: SparkSession): Seq[StreamExecution] = SqlInternals.activeQueries(session)

    /** Executors that may be given tasks now; in local mode the driver itself. */
    def liveExecutors(context: SparkContext): Set[String] =
      context.schedulerBackend match {
        // One that is being ended, or whose connection is lost, is still listed for some seconds and gets no more tasks.
        case backend: CoarseGrainedSchedulerBackend => backend.getExecutorIds().filter(backend.isExecutorActive).toSet
        case _ if context.isLocal => Set(SparkContext.DRIVER_IDENTIFIER)
        case _ => context.getExecutorIds().toSet
      }

    /**
     * End executors that run no task; false, and nothing ends, where one of them is busy. The cluster manager is told
     * first to want so many fewer, or it would start others in their place at once.
     */
    def release(context: SparkContext, ids: Seq[String]): Boolean =
      (context.schedulerBackend, context.taskScheduler) match {
        case (backend: CoarseGrainedSchedulerBackend, tasks: TaskSchedulerImpl) if !ids.exists(tasks.isExecutorBusy) =>
          context.requestTotalExecutors((liveExecutors(context) -- ids).size, 0, Map.empty)
          backend.killExecutors(ids, adjustTargetNumExecutors = false, countFailures = false, force = false).size == ids.size
        case _ => false
      }

    /** As many executors as there is room for, which is what an application begins with on a standalone cluster. */
    def wantAll(context: SparkContext): Unit = context.requestTotalExecutors(Int.MaxValue, 0, Map.empty)

    /**
     * A streaming shuffle writer waits for room downstream on one semaphore, which is private. Another one in its place,
     * before the first row, tells how long. Without this the time would have to be taken around every row.
     */
    def replaceRoom(writer: ShuffleWriter[_, _], another: Semaphore => Semaphore): Unit = {
      val field = writer.getClass.getDeclaredFields.find(_.getType == classOf[Semaphore]).getOrElse(
        throw new IllegalStateException(s"${writer.getClass.getName} has no semaphore: not the Spark this plug-in is for"))
      field.setAccessible(true)
      field.set(writer, another(field.get(writer).asInstanceOf[Semaphore]))
    }

    /** A mailbox for orders in this executor. The driver answers over the connection the executor opened. */
    def mailbox(name: String)(take: Orders => Unit): RpcEndpointRef = {
      val env: RpcEnv = SparkEnv.get.rpcEnv
      env.setupEndpoint(name, new ThreadSafeRpcEndpoint {
        override val rpcEnv: RpcEnv = env
        override def receive: PartialFunction[Any, Unit] = { case orders: Orders => take(orders) }
        override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = {
          case AreYouThere => context.reply(true)
          case AskHowFar(topology) => context.reply(Lives.howFar(topology))
        }
      })
    }
  }
}
