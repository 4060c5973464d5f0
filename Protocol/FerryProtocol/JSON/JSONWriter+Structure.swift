// Objects and arrays (RFC 8259 §4, §5). A comma comes before a member or an element unless the last
// byte opens the object or the array. No value ends with such a byte, so no state is necessary.

/// A value with one form in JSON.
package protocol JSONWritable {
  func write(to json: inout JSONWriter)
}

extension JSONWriter {
  /// Writes an object; `members` writes the members.
  @inline(__always)
  package mutating func object(_ members: (inout JSONWriter) -> Void) {
    beginObject()
    members(&self)
    endObject()
  }

  /// Opens an object whose members are written one by one, until ``endObject()``.
  @inline(__always)
  package mutating func beginObject() { byte(0x7B) }

  @inline(__always)
  package mutating func endObject() { byte(0x7D) }

  /// Writes an array; `elements` calls ``element()`` before each value.
  @inline(__always)
  package mutating func array(_ elements: (inout JSONWriter) -> Void) {
    beginArray()
    elements(&self)
    endArray()
  }

  /// Writes an array of values, each written by `write`.
  @inline(__always)
  package mutating func array<Values: Sequence>(
    of values: Values, _ write: (inout JSONWriter, Values.Element) -> Void
  ) {
    beginArray()
    for value in values {
      element()
      write(&self, value)
    }
    endArray()
  }

  /// Writes an array of values.
  package mutating func array<Values: Sequence>(
    of values: Values
  ) where Values.Element: JSONWritable {
    array(of: values) { json, value in value.write(to: &json) }
  }

  /// Opens an array whose elements are written one by one, until ``endArray()``.
  @inline(__always)
  package mutating func beginArray() { byte(0x5B) }

  @inline(__always)
  package mutating func endArray() { byte(0x5D) }

  /// Begins an element of an array, or of a list without brackets; the value follows.
  @inline(__always)
  package mutating func element() {
    if let last = bytes.last, last != 0x5B { byte(0x2C) }
  }

  /// Begins a member of an object; the value follows. `name` has at most 60 bytes, and no
  /// characters with escapes in JSON.
  @inline(__always)
  package mutating func key(_ name: StaticString) {
    // One append of all parts is as fast as one literal with all of them.
    withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { room in
      guard let start = room.baseAddress else { return }
      let count = name.utf8CodeUnitCount
      precondition(count <= 60, "a member's name is short")
      var end = start
      if bytes.last != 0x7B { end.append(0x2C) }
      end.append(0x22)
      end.copyMemory(from: name.utf8Start, byteCount: count)
      end += count
      end.append(0x22)
      end.append(0x3A)
      raw(UnsafeRawBufferPointer(start: start, count: end - start))
    }
  }

  /// Begins a member with a name from outside; the value follows.
  package mutating func key(named name: String) {
    if bytes.last != 0x7B { byte(0x2C) }
    string(name)
    byte(0x3A)
  }

  /// Begins a member with a name from outside; the value follows.
  package mutating func key(named name: Name) { key(named: name.text) }

  /// Writes a member.
  @inline(__always)
  package mutating func member(_ name: StaticString, _ value: some JSONWritable) {
    key(name)
    value.write(to: &self)
  }

  /// Writes a member; `null` if there is no value.
  @inline(__always)
  package mutating func member(_ name: StaticString, _ value: (some JSONWritable)?) {
    key(name)
    if let value { value.write(to: &self) } else { raw("null") }
  }

  /// Writes a member if there is a value.
  @inline(__always)
  package mutating func member(_ name: StaticString, ifPresent value: (some JSONWritable)?) {
    if let value { member(name, value) }
  }

  /// Writes a member with a 64-bit integer as a string; see ``numberString(_:)``.
  @inline(__always)
  package mutating func member(_ name: StaticString, digits value: Int64) {
    key(name)
    numberString(value)
  }

  /// Writes a member with bytes in base64; see ``base64(_:)``.
  @inline(__always)
  package mutating func member(_ name: StaticString, base64 value: [UInt8]) {
    key(name)
    value.withUnsafeBytes { base64($0) }
  }

  /// Writes an object with members in the order of their names.
  package mutating func object<Value>(
    of members: [Name: Value], _ write: (inout JSONWriter, Value) -> Void
  ) {
    object { json in
      for (name, value) in members.sorted(by: { $0.key < $1.key }) {
        json.key(named: name)
        write(&json, value)
      }
    }
  }
}

extension String: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension Name: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension UniqueID: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension HybridTimestamp: JSONWritable {
  package func write(to json: inout JSONWriter) { json.string(self) }
}

extension Int64: JSONWritable {
  package func write(to json: inout JSONWriter) { json.number(self) }
}

extension Int: JSONWritable {
  package func write(to json: inout JSONWriter) { json.number(Int64(self)) }
}

extension Bool: JSONWritable {
  package func write(to json: inout JSONWriter) { json.bool(self) }
}

extension Value: JSONWritable {
  package func write(to json: inout JSONWriter) { json.value(self) }
}
