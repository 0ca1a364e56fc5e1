package org.apache.spark.barograph.telemetry

import java.io.ByteArrayOutputStream
import java.nio.channels.Channels
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.arrow.memory.RootAllocator
import org.apache.arrow.vector.{BigIntVector, FieldVector, VarCharVector, VectorSchemaRoot}
import org.apache.arrow.vector.complex.ListVector
import org.apache.arrow.vector.ipc.ArrowStreamWriter
import org.apache.arrow.vector.types.Types.MinorType
import org.apache.arrow.vector.types.pojo.FieldType

/**
 * Named columns of whole numbers and of text, each of any length, as one Arrow stream: a batch of one row, in which
 * each column is a list.
 */
final class ArrowMessage {
  private val columns = mutable.ArrayBuffer[FieldVector]()

  def whole(name: String, values: Array[Long]): Unit = {
    val list = ListVector.empty(name, ArrowMessage.allocator)
    columns += list
    val inner = list.addOrGetVector[BigIntVector](ArrowMessage.Whole).getVector
    inner.allocateNew(values.length)
    var i = 0
    while (i < values.length) { inner.set(i, values(i)); i += 1 }
    close(list, values.length)
  }

  def text(name: String, values: Seq[String]): Unit = {
    val list = ListVector.empty(name, ArrowMessage.allocator)
    columns += list
    val inner = list.addOrGetVector[VarCharVector](ArrowMessage.Text).getVector
    inner.allocateNew()
    values.zipWithIndex.foreach { case (v, i) => inner.setSafe(i, v.getBytes(UTF_8)) }
    close(list, values.size)
  }

  private def close(list: ListVector, length: Int): Unit = {
    list.startNewValue(0)
    list.endValue(0, length)
    list.setValueCount(1)
  }

  /** The stream; the columns are gone afterwards. */
  def bytes(): Array[Byte] = {
    val root = new VectorSchemaRoot(columns.asJava)
    val out = new ByteArrayOutputStream(1 << 14)
    try {
      root.setRowCount(1)
      val writer = new ArrowStreamWriter(root, null, Channels.newChannel(out))
      writer.start()
      writer.writeBatch()
      writer.end()
      writer.close()
    } finally root.close()
    out.toByteArray
  }
}

object ArrowMessage {
  private val allocator = new RootAllocator()
  private val Whole = FieldType.notNullable(MinorType.BIGINT.getType)
  private val Text = FieldType.notNullable(MinorType.VARCHAR.getType)
}
