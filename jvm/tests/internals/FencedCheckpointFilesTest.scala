package org.apache.spark.barograph.internals

import java.nio.file.{Files, Path => JavaPath}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.junit.jupiter.api.Assertions.{assertEquals, assertTrue}
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.io.TempDir

import org.apache.spark.barograph.FencedCheckpointFiles

class FencedCheckpointFilesTest {
  private def files(path: String) = new FencedCheckpointFiles(new Path(path), new Configuration())

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
