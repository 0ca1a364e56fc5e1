package org.apache.spark.barograph.testing

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.barograph.FencedCheckpointFiles
import org.apache.spark.barograph.lease.{Leases, LocalLeaseFiles, Owner}
import org.apache.spark.sql.execution.streaming.checkpointing.{
  CheckpointFileManager, FileContextBasedCheckpointFileManager}

/** How long the two log entries of an epoch take to write, with and without the fence, on the same local files. */
object WriteCost {
  private val entry = Array.fill[Byte](1200)('x')

  /** Microseconds for each of `epochs`, plain and fenced in turn: plain, fenced, plain, ... */
  def measure(folder: String, epochs: Int): Array[Double] = {
    val conf = new Configuration()
    conf.set("fs.AbstractFileSystem.file.impl", "org.apache.spark.barograph.QuickLocalFs")
    val plainRoot = new Path(s"file:$folder/plain")
    val fencedRoot = new Path(s"file:$folder/fenced")
    val plain = new FileContextBasedCheckpointFileManager(plainRoot, conf)
    val fenced = new FencedCheckpointFiles(fencedRoot, conf)
    Seq(plain -> plainRoot, fenced -> fencedRoot).foreach { case (files, root) =>
      files.mkdirs(new Path(root, "offsets"))
      files.mkdirs(new Path(root, "commits"))
    }
    Leases.ensure(fencedRoot, Owner.here("cost", "cost"), LocalLeaseFiles, 10000)
    (0 until epochs).flatMap(n => Seq(commit(plain, plainRoot, n), commit(fenced, fencedRoot, n))).toArray
  }

  /** As Spark does: each entry is looked for first. */
  private def commit(files: CheckpointFileManager, root: Path, epoch: Int): Double = {
    val began = System.nanoTime()
    Seq("offsets", "commits").foreach { log =>
      val path = new Path(new Path(root, log), epoch.toString)
      if (!files.exists(path)) {
        val out = files.createAtomic(path, overwriteIfPossible = false)
        out.write(entry)
        out.close()
      }
    }
    (System.nanoTime() - began) / 1000.0
  }
}
