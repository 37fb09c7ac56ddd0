// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// Runs several calls in one transaction, as a wallet with a batching contract does. What a call spends must lie here.
contract PaymentBatch {
    struct Call {
        address target;
        uint256 value;
        bytes data;
    }

    function run(Call[] calldata calls) external payable {
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory answer) = calls[i].target.call{value: calls[i].value}(calls[i].data);
            if (!ok) assembly { revert(add(answer, 32), mload(answer)) }
        }
    }

    receive() external payable {}
}
