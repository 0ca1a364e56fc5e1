package org.apache.spark.barograph.testing

import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.nio.file.StandardOpenOption.{APPEND, CREATE, WRITE}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

/** Notes rows in files of a folder, one file for each process. What is noted before a process is killed stays. */
object RowLog {
  private val files = new ConcurrentHashMap[String, FileChannel]()

  /** For `reflect` in a query: each call is one row. Returns the row. */
  def note(folder: String, row: String): String = {
    val file = files.computeIfAbsent(folder, f => {
      Files.createDirectories(Path.of(f))
      FileChannel.open(Path.of(f, UUID.randomUUID().toString), CREATE, WRITE, APPEND)
    })
    // One write, because several tasks of the process append to this file.
    val line = ByteBuffer.wrap(s"$row\n".getBytes(UTF_8))
    file.synchronized(while (line.hasRemaining) file.write(line))
    row
  }
}
