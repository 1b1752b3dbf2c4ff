# One INTERFACE target carries every flag, so that a module cannot forget one.
include(CheckCCompilerFlag)
include(CheckLinkerFlag)

add_library(sluice_flags INTERFACE)
target_include_directories(sluice_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(sluice_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(sluice_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef
    -Wimplicit-fallthrough -fno-strict-overflow -fno-omit-frame-pointer
    -ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(SLUICE_WERROR)
    target_compile_options(sluice_flags INTERFACE -Werror)
endif()
if(SLUICE_SLOW_CHECKS)
    target_compile_definitions(sluice_flags INTERFACE SLUICE_SLOW_CHECKS)
endif()
if(SLUICE_CRASH_POINTS)
    target_compile_definitions(sluice_flags INTERFACE SLUICE_CRASH_POINTS)
endif()

if(SLUICE_SANITIZE)
    target_compile_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()

# Each flag is probed: gcc 12 and clang 14 do not know the same ones.
if(SLUICE_HARDEN)
    foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -ftrivial-auto-var-init=zero
                 -fno-delete-null-pointer-checks)
        string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
        check_c_compiler_flag(${flag} ${have})
        if(${have})
            target_compile_options(sluice_flags INTERFACE ${flag})
        endif()
    endforeach()
    target_compile_options(sluice_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
    foreach(flag -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,-z,separate-code -Wl,--as-needed)
        string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
        check_linker_flag(C ${flag} ${have})
        if(${have})
            target_link_options(sluice_flags INTERFACE ${flag})
        endif()
    endforeach()
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    target_link_options(sluice_flags INTERFACE -pie)
endif()
