package org.apache.spark.barograph.source

import org.apache.spark.unsafe.Platform

/** What lines are made of; `barograph.workloads.lines` is the same in Python. */
case class LineShape(seed: Long, wordsPerLine: Int, vocabulary: Int, skew: Double) {
  require(wordsPerLine >= 1 && wordsPerLine <= 1000, s"words_per_line must be from 1 to 1000, not $wordsPerLine")
  require(
    vocabulary >= 1 && vocabulary <= Words.Entries,
    s"vocabulary must be from 1 to ${Words.Entries} words, not $vocabulary")
  require(skew >= 0.0 && skew <= 8.0, s"skew must be from 0 to 8, not $skew")
}

/**
 * The content of row (partition, k): a pure function of both and of the shape.
 *
 * Partition p draws from splitmix64 seeded with draw p of splitmix64(seed). Line k takes the draws from k * q on, where
 * q = ceil(wordsPerLine / 4); every 16 bits of a draw, lowest first, choose an entry of the word table.
 */
final class Lines(shape: LineShape) {
  private val words = Words.of(shape.vocabulary, shape.skew)
  private val drawsPerLine = (shape.wordsPerLine + 3) / 4

  /** A buffer in which every line fits; a word is written as 8 bytes of which only some count. */
  def newBuffer(): Array[Byte] = new Array[Byte](shape.wordsPerLine * 8 + 8)

  def seedOf(partition: Int): Long = SplitMix64.draw(shape.seed, partition)

  /** Writes the line and returns its length. Allocates nothing. */
  def write(partitionSeed: Long, k: Long, buffer: Array[Byte]): Int = {
    var at = Platform.BYTE_ARRAY_OFFSET.toLong
    var draw = k * drawsPerLine
    var bits = 0L
    var position = 0
    while (position < shape.wordsPerLine) {
      if ((position & 3) == 0) {
        bits = SplitMix64.draw(partitionSeed, draw)
        draw += 1
      }
      val word = words.table((bits & 0xffffL).toInt)
      bits >>>= 16
      Platform.putLong(buffer, at, words.packed(word))
      at += words.length(word)
      position += 1
    }
    (at - Platform.BYTE_ARRAY_OFFSET).toInt - 1 // every word is followed by a blank
  }

  def line(partition: Int, k: Long): String = {
    val buffer = newBuffer()
    new String(buffer, 0, write(seedOf(partition), k, buffer), "US-ASCII")
  }

  /** Rows of numbers: the rank, from 0, of the first word the line would have. */
  def number(partitionSeed: Long, k: Long): Long =
    words.table((SplitMix64.draw(partitionSeed, k * drawsPerLine) & 0xffffL).toInt)
}

object SplitMix64 {
  /** The generator's draw number i, from 0 (Steele, Lea and Flood 2014). */
  def draw(seed: Long, i: Long): Long = {
    var z = seed + (i + 1) * 0x9e3779b97f4a7c15L
    z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L
    z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL
    z ^ (z >>> 31)
  }
}

/** table: entry -> word; packed, length: a word and the blank behind it, as the 8 bytes to write and how many count. */
final class Words private (val table: Array[Char], val packed: Array[Long], val length: Array[Int])

object Words {
  val Entries = 65536
  private val Consonants = "bcdfghjklmnpqrstvwxz"
  private val Vowels = "aeiou"
  private val Syllables = Consonants.length * Vowels.length

  private val made = new java.util.concurrent.ConcurrentHashMap[(Int, Double), Words]

  /** Made once in each JVM and shared by every reader of every epoch. */
  def of(vocabulary: Int, skew: Double): Words = made.computeIfAbsent((vocabulary, skew), _ => make(vocabulary, skew))

  private def make(vocabulary: Int, skew: Double): Words = {
    val bytes = Array.tabulate(vocabulary)(rank => (word(rank) + " ").getBytes("US-ASCII"))
    val packed = bytes.map(b => Platform.getLong(java.util.Arrays.copyOf(b, 8), Platform.BYTE_ARRAY_OFFSET))
    new Words(entries(vocabulary, skew), packed, bytes.map(_.length))
  }

  /** Word of a rank: its number in bijective base 100, a syllable for each digit; so frequent words are short. */
  def word(rank: Int): String = {
    val text = new StringBuilder
    var n = rank + 1
    while (n > 0) {
      val digit = (n - 1) % Syllables
      text.insert(0, s"${Consonants.charAt(digit / Vowels.length)}${Vowels.charAt(digit % Vowels.length)}")
      n = (n - 1) / Syllables
    }
    text.toString
  }

  /** Distributes the entries by Zipf's law: the word of rank i gets them in proportion to 1 / (i + 1)^skew. */
  private def entries(vocabulary: Int, skew: Double): Array[Char] = {
    val upTo = new Array[Double](vocabulary)
    var sum = 0.0
    for (rank <- 0 until vocabulary) {
      sum += 1.0 / power(rank + 1.0, skew)
      upTo(rank) = sum
    }
    val table = new Array[Char](Entries)
    var next = 0
    for (rank <- 0 until vocabulary) {
      val end = Math.floor(upTo(rank) / sum * Entries).toInt
      while (next < end) {
        table(next) = rank.toChar
        next += 1
      }
    }
    table
  }

  /**
   * base^exponent by products and square roots alone, with the exponent rounded to 20 binary places: these operations
   * are rounded alike everywhere, unlike any library's pow.
   */
  private def power(base: Double, exponent: Double): Double = {
    val scaled = Math.floor(exponent * (1 << 20) + 0.5).toInt
    var result = 1.0
    for (_ <- 0 until (scaled >> 20)) result *= base
    var root = base
    for (bit <- 19 to 0 by -1) {
      root = Math.sqrt(root)
      if (((scaled >> bit) & 1) == 1) result *= root
    }
    result
  }
}
