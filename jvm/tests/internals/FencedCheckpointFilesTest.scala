package org.apache.spark.barograph.internals

import java.net.URI
import java.nio.file.{Files, Path => JavaPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{DelegateToFileSystem, Path, RawLocalFileSystem}
import org.junit.jupiter.api.Assertions.{assertEquals, assertFalse, assertThrows, assertTrue}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

import org.apache.spark.barograph.FencedCheckpointFiles
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.internal.SQLConf

/** Local files by another name: a file system of which nothing is known. */
class OddFiles(at: URI, conf: Configuration)
  extends DelegateToFileSystem(at, new RawLocalFileSystem { override def getUri: URI = at }, conf, "odd", false)

class FencedCheckpointFilesTest {
  private def files(path: String) = new FencedCheckpointFiles(new Path(path), new Configuration())

  /** What the start of a query raises, which Spark hands to the user as it is. */
  private def refusal(checkpoint: String, conf: Configuration): String = {
    conf.set(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key, classOf[FencedCheckpointFiles].getName)
    assertThrows(classOf[IllegalArgumentException], () =>
      CheckpointFileManager.create(new Path(checkpoint), conf).createCheckpointDirectory()).getMessage
  }

  private def refused(scheme: String, checkpoint: String, instead: String) =
    s"the checkpoint $checkpoint is on a file system ($scheme) that is not known to rename atomically, so that two " +
      "drivers could use it at once: put it on a local disk or HDFS, or set " +
      "spark.sql.streaming.checkpointFileManagerClass to org.apache.spark.sql.execution.streaming.checkpointing." +
      s"${instead}BasedCheckpointFileManager to run without a lease"

  @Test def aFileSystemThatIsNotKnownToRenameAtomicallyIsRefusedInOneSentence(@TempDir folder: JavaPath): Unit = {
    val (counts, conf) = (folder.resolve("counts"), new Configuration())
    conf.set("fs.AbstractFileSystem.odd.impl", classOf[OddFiles].getName)
    assertEquals(refused("odd", s"odd:$counts", "FileContext"), refusal(s"odd:$counts", conf))
    assertFalse(Files.exists(counts))
  }

  /** Hadoop has only its older interface for such a scheme, or none. */
  @Test def soIsOneThatHadoopsInterfaceForItDoesNotKnow(): Unit = {
    assertEquals(refused("odd", "odd://here/counts", "FileSystem"), refusal("odd://here/counts", new Configuration()))
    val byDefault = new Configuration()
    byDefault.set("fs.defaultFS", "odd://here")
    assertEquals(refused("odd", "/counts", "FileSystem"), refusal("/counts", byDefault))
  }

  /** As in an executor, which has no lease. */
  @Test def filesOfNoCheckpointOfThisDriverAreWrittenAsUsual(@TempDir folder: JavaPath): Unit = {
    val file = folder.resolve("1.delta")
    val stream = files(s"file:$folder").createAtomic(new Path(s"file:$file"), overwriteIfPossible = false)
    stream.write(7)
    assertTrue(Files.notExists(file))
    stream.close()
    assertEquals(1L, Files.size(file))
  }
}
