package org.apache.spark.barograph.messages

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import scala.collection.mutable

/**
 * Messages between driver and executors are bytes that our own code writes and reads. Spark would deserialise objects
 * with the class loader that an executor was born with, which does not know our classes if the jar comes by spark.jars.
 *
 * A message begins with the version of this format and the kind of message. Whole numbers are zigzag numbers of 7 bits
 * in each byte, lowest first, so small ones are short; a text that occurs again is the number of its first occurrence.
 */
object Wire {
  val Version: Byte = 7

  val Hello: Byte = 1
  val Report: Byte = 2
  val Orders: Byte = 3
  val AreYouThere: Byte = 4
  val Here: Byte = 5
  val AskHowFar: Byte = 6
  val HowFar: Byte = 7
  val AskKey: Byte = 8
  val Key: Byte = 9
  val AskReport: Byte = 10

  /** The kind of a message; 0, which no kind has, if it is too short to have one. */
  def kindOf(message: Array[Byte]): Byte = if (message.length < 2) 0 else message(1)
}

/** A message that cannot be read. */
final class Malformed(why: String) extends IOException(why)

final class MessageWriter(kind: Byte) {
  private var bytes = new Array[Byte](256)
  private var size = 0
  private val texts = mutable.HashMap[String, Int]()
  byte(Wire.Version)
  byte(kind)

  def result: Array[Byte] = Arrays.copyOf(bytes, size)

  def byte(value: Byte): Unit = {
    ensure(1)
    bytes(size) = value
    size += 1
  }

  private def ensure(more: Int): Unit =
    if (size + more > bytes.length) bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, size + more))

  def flag(value: Boolean): Unit = byte(if (value) 1 else 0)

  def long(value: Long): Unit = {
    ensure(10)
    var rest = (value << 1) ^ (value >> 63)
    while ((rest & ~0x7fL) != 0L) {
      bytes(size) = ((rest & 0x7f) | 0x80).toByte
      size += 1
      rest >>>= 7
    }
    bytes(size) = rest.toByte
    size += 1
  }

  def int(value: Int): Unit = long(value.toLong)

  def text(value: String): Unit = texts.get(value) match {
    case Some(before) => int(before)
    case None =>
      int(texts.size)
      texts(value) = texts.size
      val content = value.getBytes(UTF_8)
      int(content.length)
      ensure(content.length)
      System.arraycopy(content, 0, bytes, size, content.length)
      size += content.length
  }

  def longs(values: Array[Long]): Unit = {
    int(values.length)
    var i = 0
    while (i < values.length) { long(values(i)); i += 1 }
  }

  def each[T](values: Iterable[T])(one: T => Unit): Unit = {
    int(values.size)
    values.foreach(one)
  }
}

/** Throws [[Malformed]] for everything that a [[MessageWriter]] of the same version and kind cannot have written. */
final class MessageReader(bytes: Array[Byte], kind: Byte) {
  private var at = 0
  private val texts = mutable.ArrayBuffer[String]()

  private val version = byte()
  if (version != Wire.Version) {
    throw new Malformed(
      s"it has version $version and not ${Wire.Version}: driver and executors must have the same barograph-plugin.jar")
  }
  private val found = byte()
  if (found != kind) throw new Malformed(s"it is of kind $found and not $kind")

  def byte(): Byte = {
    if (at >= bytes.length) throw new Malformed(s"it ends after ${bytes.length} bytes, in the middle")
    at += 1
    bytes(at - 1)
  }

  def flag(): Boolean = byte() match {
    case 0 => false
    case 1 => true
    case other => throw new Malformed(s"$other is neither true nor false")
  }

  def long(): Long = {
    var value, shift = 0L
    var more = true
    while (more) {
      if (shift > 63) throw new Malformed("a number is too long")
      val next = byte()
      value |= (next & 0x7fL) << shift
      shift += 7
      more = next < 0
    }
    (value >>> 1) ^ -(value & 1)
  }

  def int(): Int = {
    val value = long()
    if (value != value.toInt) throw new Malformed(s"$value is out of range")
    value.toInt
  }

  def text(): String = {
    val place = int()
    if (place >= 0 && place < texts.size) texts(place)
    else if (place != texts.size) throw new Malformed(s"text $place of ${texts.size} texts")
    else {
      val length = count()
      texts += new String(bytes, at, length, UTF_8)
      at += length
      texts.last
    }
  }

  def longs(): Array[Long] = {
    val values = new Array[Long](count())
    var i = 0
    while (i < values.length) { values(i) = long(); i += 1 }
    values
  }

  def each[T](one: => T): Seq[T] = Seq.fill(count())(one)

  /** The whole message has been read. */
  def end(): Unit = if (at != bytes.length) throw new Malformed(s"${bytes.length - at} bytes are left over")

  /** Every item takes a byte or more: a wrong count must not use up the memory. */
  private def count(): Int = {
    val n = int()
    if (n < 0 || n > bytes.length - at) throw new Malformed(s"$n items in ${bytes.length - at} bytes")
    n
  }
}
