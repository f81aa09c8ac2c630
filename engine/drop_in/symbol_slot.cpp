// SPDX-License-Identifier: BSD-3-Clause
#include <troupe/engine/drop_in/symbol_slot.hpp>

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <system_error>

namespace troupe::engine {

namespace {

const auto page_size = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));

std::uintptr_t page_of(std::uintptr_t address) { return address & ~(page_size - 1); }

/// What the dynamic section of a library says about its relocations.
struct relocations {
  explicit relocations(const dl_phdr_info& library) : base(library.dlpi_addr) {
    for (std::size_t i = 0; i < library.dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = library.dlpi_phdr[i];
      if (part.p_type == PT_DYNAMIC) read(reinterpret_cast<const ElfW(Dyn)*>(base + part.p_vaddr));
      if (part.p_type == PT_GNU_RELRO) {  // the loader protects whole pages of it
        protected_begin = page_of(base + part.p_vaddr);
        protected_end = page_of(base + part.p_vaddr + part.p_memsz);
      }
    }
  }

  void read(const ElfW(Dyn) * entry) {
    for (; entry->d_tag != DT_NULL; ++entry) {
      // glibc has added the base address to these pointers.
      const auto* const at = reinterpret_cast<const void*>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols = static_cast<const ElfW(Sym)*>(at);
      if (entry->d_tag == DT_STRTAB) names = static_cast<const char*>(at);
      if (entry->d_tag == DT_JMPREL) tables[0].first = static_cast<const ElfW(Rela)*>(at);
      if (entry->d_tag == DT_PLTRELSZ) tables[0].bytes = entry->d_un.d_val;
      if (entry->d_tag == DT_RELA) tables[1].first = static_cast<const ElfW(Rela)*>(at);
      if (entry->d_tag == DT_RELASZ) tables[1].bytes = entry->d_un.d_val;
    }
  }

  void** slot_of(const std::string& symbol) const {
    for (const auto& table : tables) {
      for (std::size_t i = 0; i < table.bytes / sizeof *table.first; ++i) {
        const ElfW(Rela)& each = table.first[i];
        const auto type = ELF64_R_TYPE(each.r_info);
        if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) &&
            symbol == names + symbols[ELF64_R_SYM(each.r_info)].st_name) {
          return reinterpret_cast<void**>(base + each.r_offset);
        }
      }
    }
    return nullptr;
  }

  bool is_protected(void** slot) const {
    const auto address = reinterpret_cast<std::uintptr_t>(slot);
    return protected_begin <= address && address < protected_end;
  }

  struct table {
    const ElfW(Rela) * first = nullptr;
    std::size_t bytes = 0;
  };

  std::uintptr_t base;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  table tables[2];  // of functions, of everything else
  std::uintptr_t protected_begin = 0, protected_end = 0;
};

struct search {
  const std::string& library;
  const std::string& symbol;
  std::size_t copies = 0;
  void** slot = nullptr;
  bool is_protected = false;
};

int look_at(dl_phdr_info* library, std::size_t, void* data) {
  auto& wanted = *static_cast<search*>(data);
  const char* const slash = std::strrchr(library->dlpi_name, '/');
  if (wanted.library != (slash == nullptr ? library->dlpi_name : slash + 1)) return 0;
  ++wanted.copies;
  const relocations found(*library);
  wanted.slot = found.slot_of(wanted.symbol);
  wanted.is_protected = found.is_protected(wanted.slot);
  return 0;
}

}  // namespace

symbol_slot::symbol_slot(const std::string& library, const std::string& symbol) {
  search found{library, symbol};
  ::dl_iterate_phdr(look_at, &found);
  if (found.copies != 1)
    throw std::runtime_error("expected " + library + " once in this process, found it " + std::to_string(found.copies) +
                             " times");
  if (found.slot == nullptr)
    throw std::runtime_error("expected that " + library + " calls " + symbol +
                             ", but it has no slot for it; is this another torch?");
  slot_ = found.slot;
  is_read_only_ = found.is_protected;
}

bool symbol_slot::replace(void* expected, void* wanted) const {
  static std::mutex one_at_a_time;  // two slots may share a page
  const std::scoped_lock lock(one_at_a_time);
  void* const page = reinterpret_cast<void*>(page_of(reinterpret_cast<std::uintptr_t>(slot_)));
  const auto protect = [&](int protection) {
    if (::mprotect(page, page_size, protection) != 0)
      throw std::system_error(errno, std::generic_category(), "mprotect of an offset table");
  };
  if (is_read_only_) protect(PROT_READ | PROT_WRITE);
  const bool had = __atomic_compare_exchange_n(slot_, &expected, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  if (is_read_only_) protect(PROT_READ);
  return had;
}

void symbol_slot::set(void* wanted) const {
  while (!replace(address(), wanted)) continue;
}

}  // namespace troupe::engine
