// A module that responds to requests needs the vocabulary of HTTP and the type of bodies, and no other part of NIO.
@_exported import HTTPTypes
@_exported import struct NIOCore.ByteBuffer
@_exported import struct NIOCore.ByteBufferAllocator
@_exported import struct NIOCore.ByteBufferView
